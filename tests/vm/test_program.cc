// SPDX-License-Identifier: Apache-2.0
#include "rewire/tests/vm/test_program.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <utility>

#include "rewire/executable_format/text/assembler.h"

namespace rewire::test {

Executable ExecutableOf(const std::string& text) {
  Result<Module> module = Assemble(text);
  if (!module) FAIL(module.error().message());
  Result<Executable> executable = Executable::FromModule(*std::move(module));
  if (!executable) FAIL(executable.error().message());
  return *std::move(executable);
}

Program ProgramOf(const std::string& text, LinkOptions options) {
  options.stock_kernels = false;
  Result<Program> program = Program::Link(ExecutableOf(text), std::move(options));
  if (!program) FAIL(program.error().message());
  return *std::move(program);
}

std::string MessageOf(const Status& status) { return status ? std::string() : status.error().message(); }

namespace {

template <typename T>
Tensor TensorOf(const std::vector<T>& elements) {
  Result<Tensor> tensor = Tensor::Make(DTypeOf<T>(), {static_cast<std::int64_t>(elements.size())});
  if (!tensor) FAIL(tensor.error().message());
  std::copy(elements.begin(), elements.end(), tensor->data<T>());
  return *std::move(tensor);
}

}  // namespace

PackedFunction Packed(RewirePackedFunction call, void* handle) {
  PackedFunction function;
  function.call = call;
  function.handle = handle;
  return function;
}

Tensor Floats(const std::vector<float>& elements) { return TensorOf(elements); }
Tensor Ints(const std::vector<std::int64_t>& elements) { return TensorOf(elements); }

std::vector<float> FloatsOf(const Tensor& tensor) {
  const auto* data = tensor.data<float>();
  if (data == nullptr) FAIL("no float tensor");
  return {data, data + tensor.view().size()};
}

Value ListOf(const std::vector<std::int64_t>& elements) {
  Value list = *Value::Adt(0, {});
  for (auto it = elements.rbegin(); it != elements.rend(); ++it) {
    const Value fields[] = {Value(*it), list};
    list = *Value::Adt(1, {fields, 2});
  }
  return list;
}

}  // namespace rewire::test
