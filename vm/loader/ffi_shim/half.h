// SPDX-License-Identifier: Apache-2.0
// Conversions between float32 and float16, on any processor.
#pragma once

#include <bit>
#include <cstdint>

namespace rewire::ffi_shim {

// IEEE 754: sign 1, exponent 5 and 8 bits, fraction 10 and 23 bits.
inline constexpr std::uint32_t kFloatInfinity = 0x7F800000;
inline constexpr std::uint32_t kDropped = 13;  // bits of a float's fraction that a half does not have
inline constexpr std::uint32_t kRebias = (127 - 15) << 23;  // from a half's exponent to a float's
inline constexpr std::uint32_t kQuiet = 0x400000;

inline float HalfToFloat(std::uint16_t half) {
  const std::uint32_t sign = std::uint32_t{half & 0x8000u} << 16;
  const std::uint32_t magnitude = half & 0x7FFFu;
  std::uint32_t bits = (magnitude << kDropped) + kRebias;
  if (magnitude < 0x400) {
    bits = std::bit_cast<std::uint32_t>(static_cast<float>(magnitude) *
                                        0x1p-24F);  // subnormal as a half, normal as a float
  } else if (magnitude >= 0x7C00) {
    bits += kRebias;
    if (magnitude > 0x7C00) bits |= kQuiet;
  }
  return std::bit_cast<float>(bits | sign);
}

// Rounds to the nearest, ties to even.
inline std::uint16_t FloatToHalf(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t magnitude = bits & 0x7FFFFFFF;
  std::uint32_t half = 0;
  if (magnitude - 0x38800000 < 0x477FF000u - 0x38800000) {
    // From 2^-14, the smallest normal half, to values that round to 2^16. A carry moves on into the exponent,
    // which is correct.
    half = (magnitude - kRebias + 0xFFF + (magnitude >> kDropped & 1)) >> kDropped;
  } else if (magnitude < 0x38800000) {
    // Next to 0.5, the last bit of a float is worth 2^-24, like that of a subnormal half. So the addition
    // rounds at the right bit.
    half = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5F) -
           std::bit_cast<std::uint32_t>(0.5F);
  } else if (magnitude <= kFloatInfinity) {
    half = 0x7C00;
  } else {
    half = 0x7E00 | (magnitude >> kDropped & 0x3FF);
  }
  return static_cast<std::uint16_t>((bits >> 16 & 0x8000) | half);
}

}  // namespace rewire::ffi_shim
