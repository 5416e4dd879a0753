// SPDX-License-Identifier: Apache-2.0
//
// Arithmetic on dimensions as a postfix program: each code takes its operands from a stack and pushes its
// result. docs/kernels.md lists the codes, at rewire.shape.eval.
#pragma once

#include <cstdint>
#include <vector>

#include "rewire/kernels/cpu/registry.h"
#include "rewire/vm/kernel/size_rules.h"

namespace rewire::kernel::cpu {

class ShapeProgram {
 public:
  // Parses the attribute `program`. Errors name it.
  static Status Make(Attributes& attributes, ShapeProgram* program);

  std::int64_t inputs() const { return inputs_; }  // shapes that it reads
  std::int64_t stores() const { return stores_; }  // numbers that it stores

  // The first inputs() tensors are shapes, i64 of rank 1. `stored` has room for stores() numbers.
  // `*overflow` becomes true where one does not fit.
  Status Run(TensorList tensors, std::int64_t* stored, bool* overflow) const;

 private:
  static constexpr int kMaxDepth = 64;
  // Used in place of a shape: the numbers that have been stored.
  static constexpr std::int64_t kStored = -1;

  static bool IsBinary(std::int64_t code) { return code > SizeCodes::kDim && code != SizeCodes::kStore; }
  static bool Apply(std::int64_t code, std::int64_t a, std::int64_t b, std::int64_t* result);
  // Checks what Run relies on: operands are complete, and the stack is neither empty nor too deep.
  Status Check();

  std::vector<std::int64_t> codes_;
  std::int64_t inputs_ = 0;
  std::int64_t stores_ = 0;
};

}  // namespace rewire::kernel::cpu
