// SPDX-License-Identifier: Apache-2.0
// The inputs of a random program's main (program_generator.h), each given to a VM in one of the ways there
// are.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "rewire/tests/vm/outputs/bound_memory.h"
#include "rewire/tests/vm/outputs/random/program_generator.h"
#include "rewire/vm/virtual_machine.h"

namespace rewire::test {

// x or y: a tensor of floats.
class FloatInput {
 public:
  enum class Mode : std::uint8_t { kUnset, kBorrowed, kStrided, kMisaligned, kCopied, kOwned };

  FloatInput(const char* name, std::int64_t size) : name_(name), size_(size) {
    memory_.Take(2 * Bytes(), 0);
    Fill(0);
  }

  const char* name() const { return name_; }
  std::uint64_t Bytes() const { return static_cast<std::uint64_t>(size_) * sizeof(float); }
  Mode mode() const { return mode_; }
  // The host's memory, which the VM reads when a run begins if the input is borrowed.
  void* memory() const { return memory_.data; }
  bool GuardsStand() const { return memory_.GuardsStand(); }

  // New contents of the host's memory.
  void Fill(std::uint64_t salt) {
    for (std::size_t i = 0; i < 2 * static_cast<std::size_t>(size_); ++i) {
      const float value = static_cast<float>(salt % 1000) + 0.25F * static_cast<float>(i);
      std::memcpy(memory_.data + i * sizeof(float), &value, sizeof(value));
    }
  }

  Status Set(VirtualMachine* vm, Mode mode) {
    const std::vector<std::int64_t> shape = {size_};
    Status status;
    std::string taken;
    Tensor owned;
    switch (mode) {
      case Mode::kUnset:
        break;
      case Mode::kBorrowed:
        status = vm->TrySetInput(name_, TensorView(memory_.data, kFloat32, shape));
        break;
      case Mode::kStrided: {
        const std::vector<std::int64_t> strides = {2};
        const TensorView view(memory_.data, kFloat32, shape, kHost, strides);
        taken = ElementsOf(view);
        status = vm->TrySetInput(name_, view);
        break;
      }
      case Mode::kMisaligned: {
        const TensorView view(memory_.data + 1, kFloat32, shape);
        taken.assign(reinterpret_cast<const char*>(memory_.data) + 1, Bytes());
        status = vm->TrySetInput(name_, view);
        break;
      }
      case Mode::kCopied: {
        const TensorView view(memory_.data, kFloat32, shape);
        taken = ElementsOf(view);
        status = vm->TrySetInput(name_, view, InputMode::kCopy);
        break;
      }
      case Mode::kOwned:
        owned = *Tensor::CopyOf(TensorView(memory_.data, kFloat32, shape));
        status = vm->TrySetInput(name_, Value(owned));
        break;
    }
    if (!status) return status;  // the input stays what it was
    mode_ = mode;
    taken_ = std::move(taken);
    owned_ = owned;
    return status;
  }

  void Unset() { mode_ = Mode::kUnset; }

  // The contents that a run reads.
  std::string Contents() const {
    switch (mode_) {
      case Mode::kUnset:
      case Mode::kBorrowed:
        return {reinterpret_cast<const char*>(memory_.data), Bytes()};
      case Mode::kOwned:
        return ElementsOf(owned_.view());
      case Mode::kStrided:
      case Mode::kMisaligned:
      case Mode::kCopied:
        return taken_;
    }
    return {};
  }
  // The whole of the host's memory.
  std::string HostBytes() const { return {reinterpret_cast<const char*>(memory_.data), 2 * Bytes()}; }

  Value Copy() const {
    std::string contents = Contents();
    const std::vector<std::int64_t> shape = {size_};
    return Value(*Tensor::CopyOf(TensorView(contents.data(), kFloat32, shape)));
  }
  bool Owns(const void* data) const {
    const auto* byte = static_cast<const unsigned char*>(data);
    return (byte >= memory_.data && byte < memory_.data + 2 * Bytes()) ||
           (owned_ && data == owned_.dl().data);
  }

 private:
  const char* name_;
  std::int64_t size_;
  GuardedMemory memory_;
  Mode mode_ = Mode::kUnset;
  std::string taken_;  // when it was set
  Tensor owned_;
};

// All four. t is a tree of the host's tensors and c a number, which may be set as one.
class SequenceInputs {
 public:
  SequenceInputs() {
    const std::vector<Value> fields = {Value(*Tensor::Make(kFloat32, std::vector<std::int64_t>{4})),
                                       Value(*Tensor::Make(kFloat32, std::vector<std::int64_t>{6}))};
    t_ = *Value::Adt(0, fields);
    FillTree(1);
  }

  FloatInput& x() { return x_; }
  FloatInput& y() { return y_; }
  std::int64_t c() const { return c_; }

  void FillTree(std::uint64_t salt) {
    for (std::uint32_t field = 0; field < 2; ++field) {
      const Tensor tensor = t_.field(field).tensor();
      for (std::int64_t i = 0; i < tensor.shape()[0]; ++i)
        tensor.data<float>()[i] = static_cast<float>(salt % 77) + static_cast<float>(10 * field + i);
    }
  }
  Status SetTree(VirtualMachine* vm) {
    const Status status = vm->TrySetInput("t", t_);
    tree_set_ = tree_set_ || status;
    return status;
  }
  Status SetNumber(VirtualMachine* vm, std::int64_t number, bool as_value) {
    const std::int64_t before = std::exchange(c_, number);
    const Status status = as_value ? vm->TrySetInput("c", Value(*Tensor::CopyOf(TensorView(&c_, {}))))
                                   : vm->TrySetInput("c", TensorView(&c_, {}));
    if (!status) c_ = before;
    number_set_ = number_set_ || status;
    return status;
  }
  void Forget(VirtualMachine* vm) {
    static_cast<void>(vm->TryClearInputs());
    x_.Unset();
    y_.Unset();
    tree_set_ = false;
    number_set_ = false;
  }
  bool AllSet() const {
    return x_.mode() != FloatInput::Mode::kUnset && y_.mode() != FloatInput::Mode::kUnset && tree_set_ &&
           number_set_;
  }

  // Copies of what a run reads.
  std::vector<Value> Copies() const {
    std::vector<Value> fields;
    for (std::uint32_t field = 0; field < 2; ++field)
      fields.emplace_back(*Tensor::CopyOf(t_.field(field).tensor().view()));
    return {x_.Copy(), y_.Copy(), *Value::Adt(0, fields), Value(*Tensor::CopyOf(TensorView(&c_, {})))};
  }
  // All bytes that belong to the host.
  std::string HostBytes() const { return x_.HostBytes() + y_.HostBytes() + Serialized(t_); }
  bool GuardsStand() const { return x_.GuardsStand() && y_.GuardsStand(); }
  bool Owns(const void* data) const {
    return x_.Owns(data) || y_.Owns(data) || data == t_.field(0).tensor().dl().data ||
           data == t_.field(1).tensor().dl().data || data == &c_;
  }

 private:
  FloatInput x_{"x", 4};
  FloatInput y_{"y", 6};
  Value t_;
  std::int64_t c_ = 0;
  bool tree_set_ = false;
  bool number_set_ = false;
};

}  // namespace rewire::test
