// SPDX-License-Identifier: Apache-2.0
//
// The types of elements that kernels choose their device code by.
#pragma once

#include <cstdint>

#include "rewire/kernels/device/call/device_call.h"

namespace rewire::kernel::device {

// A set of IntegerType.
using ElementTypes = std::uint32_t;
inline constexpr ElementTypes kReals = 1u << kTypeReal;  // f32 and f16
inline constexpr ElementTypes kBools = 1u << kTypeBool;
inline constexpr ElementTypes kBytes = 1u << kTypeI8 | 1u << kTypeU8;
inline constexpr ElementTypes kSigned = 1u << kTypeI64 | 1u << kTypeI32 | 1u << kTypeI16 | 1u << kTypeI8;
inline constexpr ElementTypes kIntegers = kSigned | 1u << kTypeU16 | 1u << kTypeU8;
// The types that reductions and positions of extremes take are those of the CPU.
inline constexpr ElementTypes kReduced = 1u << kTypeI64 | 1u << kTypeI32 | 1u << kTypeI8 | 1u << kTypeU8;
inline constexpr ElementTypes kIndices = 1u << kTypeI64 | 1u << kTypeI32;

// The type of the tensor's elements, which must be in the set.
Status ElementTypeOf(const char* what, TensorView tensor, ElementTypes expected, IntegerType* type);

// CheckF32 fails unless the elements are float32.
Status CheckF32(const char* what, TensorView tensor);

// A call for elements of the type: of `code` in the program for real numbers, or of `integer_code`.
Call ElementCall(TensorView x, IntegerType type, Program reals, const char* code, const char* integer_code);

// Numbers of an integer type.
std::int64_t LeastOf(IntegerType type);
std::int64_t MostOf(IntegerType type);
// The number held in the type's range; NaN is 0.
std::int64_t HeldIn(IntegerType type, double value);

}  // namespace rewire::kernel::device
