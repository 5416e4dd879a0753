// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/cpu/shape/shape_program.h"

#include <algorithm>

#include "rewire/kernels/cpu/support/checks.h"

namespace rewire::kernel::cpu {

Status ShapeProgram::Make(Attributes& attributes, ShapeProgram* program) {
  attributes.Require("program");
  program->codes_ = attributes.Ints("program", {});
  return program->Check();
}

Status ShapeProgram::Check() {
  using enum SizeCodes::Code;
  int depth = 0;
  for (std::size_t i = 0; i < codes_.size(); ++i) {
    const std::int64_t code = codes_[i];
    const std::size_t operands = code == kPush ? 1 : code == kDim ? 2 : 0;
    if (code < SizeCodes::kPush || code > kBroadcast || codes_.size() - i <= operands)
      return ValueError("attribute 'program': no instruction at ", i);
    if (code == kDim) {
      const std::int64_t input = codes_[i + 1], axis = codes_[i + 2];
      if (input < kStored || input >= 4096 || axis < 0 ||
          axis >= (input == kStored ? stores_ : kMaxKernelRank))
        return ValueError("attribute 'program': no such dimension at ", i);
      inputs_ = std::max(inputs_, input + 1);
    }
    i += operands;
    depth += code <= kDim ? 1 : -1;
    if (depth < (code == kStore ? 0 : 1) || depth > kMaxDepth)
      return ValueError("attribute 'program': the stack holds ", depth, " values after ", i);
    if (code == kStore) ++stores_;
  }
  return Status();
}

Status ShapeProgram::Run(TensorList tensors, std::int64_t* stored, bool* overflow) const {
  using enum SizeCodes::Code;
  std::int64_t stack[kMaxDepth];
  int depth = 0;
  std::int64_t* next = stored;
  for (std::size_t i = 0; i < codes_.size(); ++i) {
    const std::int64_t code = codes_[i];
    if (code == kPush) {
      stack[depth++] = codes_[++i];
    } else if (code == kDim && codes_[i + 1] == kStored) {
      stack[depth++] = stored[codes_[i + 2]];
      i += 2;
    } else if (code == kDim) {
      const TensorView shape = tensors[static_cast<int>(codes_[i + 1])];
      const std::int64_t axis = codes_[i + 2];
      if (axis >= shape.dim(0)) return ValueError("shape ", codes_[i + 1], " has no axis ", axis);
      stack[depth++] = shape.data<std::int64_t>()[axis];
      i += 2;
    } else if (IsBinary(code)) {
      --depth;
      // NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage): Check has counted the depth.
      *overflow = !Apply(code, stack[depth - 1], stack[depth], &stack[depth - 1]) || *overflow;
    } else {
      *next++ = stack[--depth];  // NOLINT(clang-analyzer-core.uninitialized.Assign): as above
    }
  }
  return Status();
}

bool ShapeProgram::Apply(std::int64_t code, std::int64_t a, std::int64_t b, std::int64_t* result) {
  using enum SizeCodes::Code;
  if (code == kAdd) return !__builtin_add_overflow(a, b, result);
  if (code == kMultiply) return !__builtin_mul_overflow(a, b, result);
  if (code == kMaximum || code == kMinimum || code == kBroadcast) {
    *result = code == kMaximum ? std::max(a, b) : code == kMinimum ? std::min(a, b) : BroadcastSize(a, b);
    return true;
  }
  *result = 0;
  if (b == 0) return true;
  if (b == -1) return !__builtin_sub_overflow(std::int64_t{0}, a, result);
  *result = a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
  return true;
}

}  // namespace rewire::kernel::cpu
