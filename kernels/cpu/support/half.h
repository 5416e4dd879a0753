// SPDX-License-Identifier: Apache-2.0
//
// 16-bit floats in memory. Computations use float: values are converted when they are read, and rounded to
// the nearest (ties to even) when they are written.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "rewire/vm/kernel/tensor_view.h"

namespace rewire::kernel::cpu {

// IEEE 754 binary16: 5 bits of exponent, 10 of mantissa.
struct Float16 {
  std::uint16_t bits;

  Float16() = default;
  explicit Float16(float value) {
    const auto whole = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t magnitude = whole & 0x7FFFFFFFu;
    std::uint32_t half;
    if (magnitude > 0x7F800000u) {
      half = 0x7E00u | (magnitude >> 13 & 0x3FFu);  // NaN, made quiet
    } else if (magnitude >= 0x477FF000u) {
      half = 0x7C00u;  // values that round to 2^16 or more become infinite
    } else if (magnitude < 0x38800000u) {
      // Subnormal. Next to 0.5, the last bit of a float is worth 2^-24, like that of a subnormal half. So the
      // addition rounds correctly.
      half = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3F000000u;
    } else {
      half = (magnitude + 0xFFFu + (magnitude >> 13 & 1u) - 0x38000000u) >> 13;
    }
    bits = static_cast<std::uint16_t>((whole >> 16 & 0x8000u) | half);
  }
  explicit operator float() const {
    const std::uint32_t magnitude = bits & 0x7FFFu;
    const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
    if (magnitude < 0x400u) {
      const float value = static_cast<float>(magnitude) * 0x1p-24f;
      return std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) | sign);
    }
    const std::uint32_t bias = magnitude >= 0x7C00u ? 0x70000000u : 0x38000000u;
    return std::bit_cast<float>(sign | ((magnitude << 13) + bias));
  }
};

// The upper half of a float.
struct BFloat16 {
  std::uint16_t bits;

  BFloat16() = default;
  explicit BFloat16(float value) {
    const auto whole = std::bit_cast<std::uint32_t>(value);
    const bool is_nan = (whole & 0x7FFFFFFFu) > 0x7F800000u;
    const std::uint32_t rounded = is_nan ? whole | 0x400000u : whole + 0x7FFFu + (whole >> 16 & 1u);
    bits = static_cast<std::uint16_t>(rounded >> 16);
  }
  explicit operator float() const { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }
};

template <typename T>
inline constexpr bool kIsHalf = std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>;

// The type in which numbers of type T are computed.
template <typename T>
using Computed = std::conditional_t<kIsHalf<T>, float, T>;

}  // namespace rewire::kernel::cpu

namespace rewire::kernel {

template <>
constexpr DLDataType DTypeOf<cpu::Float16>() {
  return DLDataType{kDLFloat, 16, 1};
}
template <>
constexpr DLDataType DTypeOf<cpu::BFloat16>() {
  return DLDataType{kDLBfloat, 16, 1};
}

}  // namespace rewire::kernel
