// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "rewire/vm/virtual_machine.h"

namespace rewire::test {

// The inputs that a random program's main takes. The memory is this one's: the VM borrows it, and a run may
// be told to overwrite it.
class ProgramInputs {
 public:
  explicit ProgramInputs(std::uint64_t seed) : c_(static_cast<std::int64_t>(seed % 3)) {
    const std::vector<Value> fields = {Value(*Tensor::Make(kFloat32, std::vector<std::int64_t>{4})),
                                       Value(*Tensor::Make(kFloat32, std::vector<std::int64_t>{6}))};
    t_ = *Value::Adt(0, fields);
    Fill();
  }
  // Fresh contents, the same for every run.
  void Fill() {
    for (std::size_t i = 0; i < 6; ++i) {
      if (i < 4) x_[i] = 0.25F + static_cast<float>(i);
      if (i < 4) t_.field(0).tensor().data<float>()[i] = 20.0F + static_cast<float>(i);
      y_[i] = 10.5F - static_cast<float>(i);
      t_.field(1).tensor().data<float>()[i] = 30.0F + static_cast<float>(i);
    }
  }
  void Set(VirtualMachine* vm) {
    vm->SetInput("x", TensorView(x_.data(), {4}));
    vm->SetInput("y", TensorView(y_.data(), {6}));
    vm->SetInput("t", t_);
    vm->SetInput("c", TensorView(&c_, {}));
  }
  std::vector<Value> Values() const {
    return {Value(*Tensor::CopyOf(TensorView(x_.data(), {4}))),
            Value(*Tensor::CopyOf(TensorView(y_.data(), {6}))), t_,
            Value(*Tensor::CopyOf(TensorView(&c_, {})))};
  }
  // Memory of one of the four tensors, and its bytes.
  float* Memory(std::size_t which) const {
    return which == 0   ? const_cast<float*>(x_.data())
           : which == 1 ? const_cast<float*>(y_.data())
                        : t_.field(static_cast<std::uint32_t>(which - 2)).tensor().data<float>();
  }
  static std::uint64_t Bytes(std::size_t which) { return which % 2 == 0 ? 16 : 24; }
  bool Owns(const void* data) const {
    for (std::size_t i = 0; i < 4; ++i) {
      if (data == Memory(i)) return true;
    }
    return data == &c_;
  }

 private:
  alignas(64) std::array<float, 4> x_{};
  alignas(64) std::array<float, 6> y_{};
  Value t_;
  std::int64_t c_;
};

}  // namespace rewire::test
