// SPDX-License-Identifier: Apache-2.0
// Conversions of float16 by the names that code compiled by TVM up to 0.13 calls, which TVM's own runtime
// had.
#include <cstdint>
#include <cstring>

#include "vm/loader/ffi_shim/runtime.h"

namespace rewire::ffi_shim {
namespace {

// IEEE 754: sign 1, exponent 5 and 8 bits, fraction 10 and 23 bits.
constexpr std::uint32_t kFloatInfinity = 0x7F800000;

}  // namespace

REWIRE_FFI_API float __gnu_h2f_ieee(std::uint16_t half) {
  const std::uint32_t sign = std::uint32_t{half & 0x8000u} << 16;
  const std::uint32_t exponent = half >> 10 & 0x1F;
  std::uint32_t fraction = half & 0x3FFu;
  std::uint32_t bits = 0;
  if (exponent == 0x1F) {
    bits = kFloatInfinity | fraction << 13 | (fraction != 0 ? 0x400000 : 0);  // NaNs become quiet
  } else if (exponent != 0) {
    bits = (exponent + 112) << 23 | fraction << 13;
  } else if (fraction != 0) {
    // Subnormal there, normal here: the leading bit moves out of the fraction.
    std::uint32_t shift = 0;
    for (; (fraction & 0x400) == 0; ++shift) fraction <<= 1;
    bits = (113 - shift) << 23 | (fraction & 0x3FF) << 13;
  }
  bits |= sign;
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

// Rounds to the nearest, ties to even.
REWIRE_FFI_API std::uint16_t __gnu_f2h_ieee(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  const auto sign = static_cast<std::uint16_t>(bits >> 16 & 0x8000);
  const std::uint32_t magnitude = bits & 0x7FFFFFFF;
  if (magnitude > kFloatInfinity)
    return static_cast<std::uint16_t>(sign | 0x7E00 | (magnitude >> 13 & 0x3FF));
  if (magnitude >= 0x47800000) return static_cast<std::uint16_t>(sign | 0x7C00);  // 65536 and more
  // What is dropped of the fraction: 13 bits, and more below the smallest normal half, 2^-14.
  const std::uint32_t exponent = magnitude >> 23;
  const std::uint32_t dropped = exponent >= 113 ? 13 : 126 - exponent;
  if (dropped > 24) return sign;
  const std::uint32_t fraction =
      exponent >= 113 ? magnitude - (112u << 23) : (magnitude & 0x7FFFFF) | 0x800000;
  const std::uint32_t kept = fraction >> dropped;
  const std::uint32_t rest = fraction & ((1u << dropped) - 1);
  const std::uint32_t half_unit = 1u << (dropped - 1);
  const bool up = rest > half_unit || (rest == half_unit && (kept & 1) != 0);
  return static_cast<std::uint16_t>(
      sign | (kept + (up ? 1 : 0)));  // a carry runs on into the exponent, as it should
}

}  // namespace rewire::ffi_shim
