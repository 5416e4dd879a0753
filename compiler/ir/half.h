// SPDX-License-Identifier: Apache-2.0
//
// Floats of 16 bits: f16 and bf16.
#pragma once

#include <bit>
#include <cstdint>

#include "rewire/base/dtype.h"
#include "rewire/vm/loader/ffi_shim/half.h"

namespace rewire::compiler {

inline bool IsHalf(DLDataType dtype) {
  return dtype.bits == 16 && dtype.lanes == 1 && (dtype.code == kFloat || dtype.code == kBFloat);
}

// The number that an element of such a dtype stands for.
inline float FloatOfHalf(DLDataType dtype, std::uint16_t bits) {
  if (dtype.code == kFloat) return ffi_shim::HalfToFloat(bits);
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);  // bf16 is the upper half of a float
}

// By how much, in parts of itself, a number changes at most when it is rounded to such a dtype.
inline double RoundingOfHalf(DLDataType dtype) { return dtype.code == kFloat ? 0x1p-11 : 0x1p-8; }

}  // namespace rewire::compiler
