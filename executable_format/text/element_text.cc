// SPDX-License-Identifier: Apache-2.0
#include "rewire/executable_format/text/element_text.h"

#include <fmt/format.h>

#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>

#include "rewire/base/dtype.h"
#include "rewire/executable_format/text/cursor.h"

namespace rewire::text {
namespace {

// An IEEE 754 binary format by its field widths.
struct FloatFormat {
  int exponent_bits;
  int mantissa_bits;

  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  int sign_bit() const { return exponent_bits + mantissa_bits; }
  std::uint64_t infinity() const { return ((std::uint64_t{1} << exponent_bits) - 1) << mantissa_bits; }
  std::uint64_t quiet_nan() const { return infinity() | (std::uint64_t{1} << (mantissa_bits - 1)); }
  bool IsNan(std::uint64_t bits) const {
    return (bits & ((std::uint64_t{1} << sign_bit()) - 1)) > infinity();
  }
};

std::optional<FloatFormat> FormatOf(DLDataType dtype) {
  if (dtype.code == kBFloat && dtype.bits == 16) return FloatFormat{8, 7};
  if (dtype.code != kFloat) return std::nullopt;
  if (dtype.bits == 16) return FloatFormat{5, 10};
  if (dtype.bits == 32) return FloatFormat{8, 23};
  if (dtype.bits == 64) return FloatFormat{11, 52};
  return std::nullopt;
}

// Exact for the 16-bit formats, the only ones it is used for.
double DecodeSmall(FloatFormat format, std::uint64_t bits) {
  const double sign = (bits >> format.sign_bit()) != 0 ? -1.0 : 1.0;
  const std::uint64_t mantissa = bits & ((std::uint64_t{1} << format.mantissa_bits) - 1);
  const int exponent = static_cast<int>((bits >> format.mantissa_bits) & ((1u << format.exponent_bits) - 1));
  if (exponent == (1 << format.exponent_bits) - 1) return sign * std::numeric_limits<double>::infinity();
  const std::uint64_t significand =
      exponent == 0 ? mantissa : mantissa | (std::uint64_t{1} << format.mantissa_bits);
  return sign * std::ldexp(static_cast<double>(significand),
                           std::max(exponent, 1) - format.bias() - format.mantissa_bits);
}

// Rounds to nearest, ties to even. A magnitude too large gives infinity's bits.
std::uint64_t EncodeSmall(FloatFormat format, double value) {
  const std::uint64_t sign = std::uint64_t{std::signbit(value)} << format.sign_bit();
  const double magnitude = std::fabs(value);
  if (std::isinf(magnitude)) return sign | format.infinity();
  if (magnitude == 0) return sign;
  const int exponent = std::max(std::ilogb(magnitude), 1 - format.bias());
  if (exponent > format.bias()) return sign | format.infinity();
  const double scaled = std::nearbyint(std::ldexp(magnitude, format.mantissa_bits - exponent));
  // A subnormal's field is one below that of the smallest normal, whose leading bit is not stored. Adding the
  // significand, with that bit, carries into the exponent where rounding went up to the next power of two.
  return sign | ((static_cast<std::uint64_t>(exponent + format.bias() - 1) << format.mantissa_bits) +
                 static_cast<std::uint64_t>(scaled));
}

std::uint64_t LoadBits(DLDataType dtype, const std::byte* bytes) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, bytes, ElementBytes(dtype));  // little-endian, as everything in a file
  return bits;
}

void StoreBits(DLDataType dtype, std::uint64_t bits, std::byte* bytes) {
  std::memcpy(bytes, &bits, ElementBytes(dtype));
}

template <typename Value>
std::string ToChars(Value value) {
  char buffer[32];
  const auto [end, error] = std::to_chars(buffer, buffer + sizeof(buffer), value);
  return {buffer, end};
}

std::string FloatText(DLDataType dtype, FloatFormat format, std::uint64_t bits) {
  if (format.IsNan(bits)) {
    return bits == format.quiet_nan() ? "nan" : fmt::format("nan:0x{:0{}x}", bits, dtype.bits / 4);
  }
  if (dtype.bits == 64) return ToChars(std::bit_cast<double>(bits));
  if (dtype.bits == 32) return ToChars(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  return ToChars(static_cast<float>(DecodeSmall(format, bits)));
}

template <typename Value>
std::optional<Value> FromChars(std::string_view text) {
  if (!text.empty() && text.front() == '+') text.remove_prefix(1);
  Value value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end != text.data() + text.size() || text.empty() || std::isnan(value)) return std::nullopt;
  // from_chars leaves the value alone when it rounds to zero or is too large: strtod tells the two apart.
  if (error == std::errc::result_out_of_range) {
    const double rounded = std::strtod(std::string(text).c_str(), nullptr);
    if (std::fabs(rounded) >= 1) return std::nullopt;
    return static_cast<Value>(rounded);
  }
  if (error != std::errc()) return std::nullopt;
  return value;
}

Status OutOfRange(DLDataType dtype, std::string_view text) {
  return Fail(StatusCode::kInvalidArgument, fmt::format("'{}' does not fit {}", text, DTypeName(dtype)));
}

Status NotA(DLDataType dtype, std::string_view text) {
  return Fail(StatusCode::kInvalidArgument, fmt::format("'{}' is no {} value", text, DTypeName(dtype)));
}

Status ParseFloat(DLDataType dtype, FloatFormat format, std::string_view text, std::byte* bytes) {
  constexpr std::string_view kNanBits = "nan:";
  std::uint64_t bits = 0;
  if (text == "nan") {
    bits = format.quiet_nan();
  } else if (text.substr(0, kNanBits.size()) == kNanBits) {
    const std::optional<std::uint64_t> given = ParseUInt64(text.substr(kNanBits.size()));
    if (!given || (dtype.bits < 64 && (*given >> dtype.bits) != 0) || !format.IsNan(*given)) {
      return Fail(StatusCode::kInvalidArgument,
                  fmt::format("'{}' does not give the bits of a {} NaN", text, DTypeName(dtype)));
    }
    bits = *given;
  } else if (dtype.bits == 32) {
    const std::optional<float> value = FromChars<float>(text);
    if (!value) return FromChars<double>(text) ? OutOfRange(dtype, text) : NotA(dtype, text);
    bits = std::bit_cast<std::uint32_t>(*value);
  } else {
    const std::optional<double> value = FromChars<double>(text);
    if (!value) return NotA(dtype, text);
    bits = dtype.bits == 64 ? std::bit_cast<std::uint64_t>(*value) : EncodeSmall(format, *value);
    if (dtype.bits == 16 && std::isfinite(*value) && (bits & format.infinity()) == format.infinity()) {
      return OutOfRange(dtype, text);
    }
  }
  StoreBits(dtype, bits, bytes);
  return {};
}

Status ParseSigned(DLDataType dtype, std::string_view text, std::byte* bytes) {
  const std::optional<std::int64_t> value = ParseInt64(text);
  if (!value) return ParseUInt64(text) ? OutOfRange(dtype, text) : NotA(dtype, text);
  const std::int64_t max = std::numeric_limits<std::int64_t>::max() >> (64 - dtype.bits);
  if (*value > max || *value < -max - 1) return OutOfRange(dtype, text);
  StoreBits(dtype, static_cast<std::uint64_t>(*value), bytes);
  return {};
}

Status ParseUnsigned(DLDataType dtype, std::string_view text, std::byte* bytes) {
  const std::optional<std::uint64_t> value = ParseUInt64(text);
  if (!value) return ParseInt64(text) ? OutOfRange(dtype, text) : NotA(dtype, text);
  if (dtype.bits < 64 && (*value >> dtype.bits) != 0) return OutOfRange(dtype, text);
  StoreBits(dtype, *value, bytes);
  return {};
}

}  // namespace

bool HasElementText(DLDataType dtype) {
  if (dtype.lanes != 1) return false;
  if (dtype == kBool8 || FormatOf(dtype)) return true;
  const bool integer = dtype.code == kInt || dtype.code == kUInt;
  return integer && (dtype.bits == 8 || dtype.bits == 16 || dtype.bits == 32 || dtype.bits == 64);
}

std::string ElementText(DLDataType dtype, const std::byte* bytes) {
  const std::uint64_t bits = LoadBits(dtype, bytes);
  if (const std::optional<FloatFormat> format = FormatOf(dtype)) return FloatText(dtype, *format, bits);
  if (dtype.code == kBool) return bits == 0 ? "false" : bits == 1 ? "true" : "";
  if (dtype.code == kUInt) return ToChars(bits);
  const int unused = 64 - dtype.bits;
  return ToChars(static_cast<std::int64_t>(bits << unused) >> unused);
}

Status ParseElement(DLDataType dtype, std::string_view text, std::byte* bytes) {
  if (const std::optional<FloatFormat> format = FormatOf(dtype))
    return ParseFloat(dtype, *format, text, bytes);
  if (dtype.code == kBool) {
    const bool is_true = text == "true" || text == "1";
    if (!is_true && text != "false" && text != "0") return NotA(dtype, text);
    *bytes = static_cast<std::byte>(is_true);
    return {};
  }
  return dtype.code == kUInt ? ParseUnsigned(dtype, text, bytes) : ParseSigned(dtype, text, bytes);
}

double ElementValue(DLDataType dtype, const std::byte* bytes) {
  const std::uint64_t bits = LoadBits(dtype, bytes);
  if (dtype.bits == 64) return std::bit_cast<double>(bits);
  if (dtype.bits == 32) return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
  const FloatFormat format = *FormatOf(dtype);
  return format.IsNan(bits) ? std::numeric_limits<double>::quiet_NaN() : DecodeSmall(format, bits);
}

void StoreElementValue(DLDataType dtype, double value, std::byte* bytes) {
  if (dtype.bits == 64) return StoreBits(dtype, std::bit_cast<std::uint64_t>(value), bytes);
  if (dtype.bits == 32)
    return StoreBits(dtype, std::bit_cast<std::uint32_t>(static_cast<float>(value)), bytes);
  const FloatFormat format = *FormatOf(dtype);
  StoreBits(dtype, std::isnan(value) ? format.quiet_nan() : EncodeSmall(format, value), bytes);
}

std::string DoubleText(double value) {
  std::string text = ElementText(kFloat64, reinterpret_cast<const std::byte*>(&value));
  if (text.find_first_of(".en") == std::string::npos) text += ".0";
  return text;
}

}  // namespace rewire::text
