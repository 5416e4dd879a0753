// SPDX-License-Identifier: Apache-2.0
//
// Numbers of 8 bits and less, one in each byte: floats of 8 and 4 bits, integers of 4 and 2. Computations use
// float. Which type it is, is known only while running: there are many, and each has at most 256 values.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "rewire/kernels/cpu/support/convert.h"
#include "rewire/vm/kernel/tensor_view.h"

namespace rewire::kernel::cpu {

// How the format that is an exponent alone rounds, whose values are the powers of 2.
enum class PowerRounding : std::uint8_t { kUp, kDown, kNearest };

struct NarrowFormat {
  std::uint8_t code = 0;  // DLPack's
  std::uint8_t bits = 0;
  bool is_integer = false;
  // The bits of floats.
  int mantissa = 0;
  int bias = 0;
  float most = 0;             // the largest finite value
  int infinity = -1;          // its code; -1: there is none
  int nan = -1;               // likewise
  bool negative_zero = true;  // otherwise that code is NaN
  bool is_power = false;      // an exponent alone, without a sign

  bool is_signed() const { return code != kDLUInt && !is_power; }
  int sign_bit() const { return 1 << (bits - 1); }

  float Decode(std::uint8_t stored) const {
    const int raw = stored & ((1 << bits) - 1);
    if (is_integer)
      return static_cast<float>(is_signed() && (raw & sign_bit()) != 0 ? raw - 2 * sign_bit() : raw);
    if (is_power) return raw == nan ? kNaN : std::ldexp(1.0f, raw - bias);
    const int magnitude = raw & (sign_bit() - 1);
    const float factor = (raw & sign_bit()) != 0 ? -1.0f : 1.0f;
    if (!negative_zero && raw == sign_bit()) return kNaN;
    if (infinity >= 0 && magnitude == infinity) return factor * std::numeric_limits<float>::infinity();
    if (negative_zero && nan >= 0 && magnitude >= std::min(nan, infinity >= 0 ? infinity + 1 : nan))
      return kNaN;
    const int exponent = magnitude >> mantissa, fraction = magnitude & ((1 << mantissa) - 1);
    if (exponent == 0) return factor * std::ldexp(static_cast<float>(fraction), 1 - bias - mantissa);
    return factor * std::ldexp(static_cast<float>(fraction + (1 << mantissa)), exponent - bias - mantissa);
  }

  // Rounds to the nearest value, ties to even. Values beyond the largest become that one if `saturate`,
  // otherwise infinite, or NaN where the format has no infinity.
  std::uint8_t Encode(float value, bool saturate, PowerRounding rounding) const {
    if (is_power) return EncodePower(value, saturate, rounding);
    if (std::isnan(value)) return static_cast<std::uint8_t>(NaNCode(std::signbit(value)));
    const int sign = std::signbit(value) ? sign_bit() : 0;
    const float magnitude = std::fabs(value);
    const auto beyond = [&] {
      if (saturate || (infinity < 0 && nan < 0)) return sign | MagnitudeCode(most);
      return infinity >= 0 ? sign | infinity : NaNCode(sign != 0);
    };
    if (std::isinf(value)) return static_cast<std::uint8_t>(beyond());
    // The distance of two values near this one.
    int exponent = 0;
    std::frexp(magnitude, &exponent);
    const int least = std::max(exponent - 1, 1 - bias) - mantissa;
    const float rounded = std::ldexp(std::nearbyint(std::ldexp(magnitude, -least)), least);
    if (rounded > most) return static_cast<std::uint8_t>(beyond());
    const int code_of = MagnitudeCode(rounded);
    return static_cast<std::uint8_t>(code_of == 0 && !negative_zero ? 0 : sign | code_of);
  }

  // For integers. A whole number beyond the range becomes its nearest end, NaN the least.
  std::uint8_t SaturateInteger(float whole) const {
    const int least = is_signed() ? -sign_bit() : 0;
    const int most = least + 2 * sign_bit() - 1;
    if (!(whole > static_cast<float>(least))) return EncodeInteger(std::int64_t{least});
    return EncodeInteger(ToType<std::int64_t>(std::min(whole, static_cast<float>(most))));
  }

  // For integers. Floats are truncated, and what is left wraps.
  template <typename From>
  std::uint8_t EncodeInteger(From number) const {
    if constexpr (std::is_integral_v<From>) {
      const int raw = static_cast<int>(static_cast<std::uint64_t>(number) & 0xFF) & (2 * sign_bit() - 1);
      // The upper bits are copies of the sign.
      const bool negative = is_signed() && (raw & sign_bit()) != 0;
      return static_cast<std::uint8_t>(negative ? raw | ~(2 * sign_bit() - 1) : raw);
    } else {
      return EncodeInteger(ToType<std::int64_t>(number));
    }
  }

 private:
  static constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

  int NaNCode(bool negative) const {
    if (nan < 0) return sign_bit();  // a format without NaN: its negative zero
    return negative_zero && negative ? nan | sign_bit() : nan;
  }

  // The code of a value that the format has exactly.
  int MagnitudeCode(float value) const {
    if (value == 0) return 0;
    int exponent = 0;
    std::frexp(value, &exponent);
    exponent -= 1;
    if (exponent < 1 - bias) return ToType<std::int32_t>(std::ldexp(value, mantissa + bias - 1));
    const auto fraction = ToType<std::int32_t>(std::ldexp(value, mantissa - exponent)) - (1 << mantissa);
    return ((exponent + bias) << mantissa) + fraction;
  }

  std::uint8_t EncodePower(float value, bool saturate, PowerRounding rounding) const {
    const auto whole = std::bit_cast<std::uint32_t>(value);
    std::uint32_t exponent = whole >> 23 & 0xFF;
    if (exponent == 0xFF) return 0xFF;
    // The bits below the power of 2. The least power, 2^-127, has its own bit as a subnormal float.
    const std::uint32_t fraction = whole & 0x7FFFFF;
    const std::uint32_t none = exponent == 0 ? 0x400000 : 0, half = exponent == 0 ? 0x600000 : 0x3FFFFF;
    const bool up = rounding == PowerRounding::kUp        ? fraction > none
                    : rounding == PowerRounding::kNearest ? fraction > half
                                                          : false;
    if (up && !(saturate && exponent == 0xFE)) ++exponent;
    return static_cast<std::uint8_t>(exponent);
  }
};

// The format of a dtype; null if it is none of these.
inline const NarrowFormat* FormatOf(DLDataType dtype) {
  static constexpr NarrowFormat kFormats[] = {
      {.code = kDLInt, .bits = 4, .is_integer = true},
      {.code = kDLUInt, .bits = 4, .is_integer = true},
      {.code = kDLInt, .bits = 2, .is_integer = true},
      {.code = kDLUInt, .bits = 2, .is_integer = true},
      // E4M3FN, E4M3FNUZ, E5M2, E5M2FNUZ, E8M0FNU and E2M1FN.
      {.code = 10, .bits = 8, .mantissa = 3, .bias = 7, .most = 448, .nan = 0x7F},
      {.code = 11, .bits = 8, .mantissa = 3, .bias = 8, .most = 240, .nan = 0x80, .negative_zero = false},
      {.code = 12, .bits = 8, .mantissa = 2, .bias = 15, .most = 57344, .infinity = 0x7C, .nan = 0x7E},
      {.code = 13, .bits = 8, .mantissa = 2, .bias = 16, .most = 57344, .nan = 0x80, .negative_zero = false},
      {.code = 14, .bits = 8, .bias = 127, .nan = 0xFF, .is_power = true},
      {.code = 17, .bits = 4, .mantissa = 1, .bias = 1, .most = 6},
  };
  for (const NarrowFormat& format : kFormats) {
    if (format.code == dtype.code && format.bits == dtype.bits && dtype.lanes == 1) return &format;
  }
  return nullptr;
}

}  // namespace rewire::kernel::cpu
