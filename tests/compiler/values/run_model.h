// SPDX-License-Identifier: Apache-2.0
// Runs a small model over inputs that a test makes.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rewire/base/dtype.h"
#include "rewire/tests/compiler/model_builder.h"
#include "rewire/vm/virtual_machine.h"

namespace rewire::test {

// Elements of one dtype under a shape.
struct Elements {
  DLDataType dtype = kFloat32;
  Shape shape;
  std::vector<std::byte> bytes;

  TensorView view() { return {bytes.data(), dtype, shape}; }
  bool operator==(const Elements& other) const {
    return dtype == other.dtype && shape == other.shape && bytes == other.bytes;
  }
};

inline std::int64_t CountOf(const Shape& shape) {
  std::int64_t count = 1;
  for (const std::int64_t size : shape) count *= size;
  return count;
}

template <typename T>
Elements ElementsOf(const Shape& shape, const std::vector<T>& values) {
  Elements elements{DTypeOf<T>(), shape, std::vector<std::byte>(values.size() * sizeof(T))};
  if (!values.empty()) std::memcpy(elements.bytes.data(), values.data(), elements.bytes.size());
  return elements;
}

// A model that is compiled and linked, or why it is not.
class LinkedModel {
 public:
  explicit LinkedModel(const onnx::ModelProto& model, const compiler::CompileOptions& options = {}) {
    Outcome outcome = CompileProto(model, options);
    error_ = outcome.message;
    for (const compiler::Unsupported& node : outcome.unsupported) error_ += "; " + node.reason;
    if (!error_.empty()) return;
    const Result<Executable> executable = Executable::FromModule(std::move(outcome.compiled.module));
    if (!executable) {
      error_ = executable.error().message();
      return;
    }
    Result<Program> program = Program::Link(*executable);
    if (program)
      vm_.emplace(*program);
    else
      error_ = program.error().message();
  }

  const std::string& error() const { return error_; }
  // Sets the inputs in their order and runs `main`: "" or the error.
  std::string Run(std::vector<Elements>* inputs) {
    for (std::uint32_t i = 0; i < inputs->size(); ++i) {
      const Status set = vm_->TrySetInput(i, (*inputs)[i].view());
      if (!set) return set.error().message();
    }
    const Status done = vm_->TryInvoke();
    return done ? "" : done.error().message();
  }
  Elements Output(std::uint32_t leaf = 0) const {
    const Tensor tensor = vm_->TryOutput(leaf)->tensor();
    Elements elements{tensor.dtype(), Shape(tensor.shape().begin(), tensor.shape().end()), {}};
    const auto* first = static_cast<const std::byte*>(tensor.view().data());
    elements.bytes.assign(first, first + CountOf(elements.shape) * ElementBytes(elements.dtype));
    return elements;
  }

 private:
  std::string error_;
  std::optional<VirtualMachine> vm_;
};

}  // namespace rewire::test
