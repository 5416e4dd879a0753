// SPDX-License-Identifier: Apache-2.0
#include "rewire/executable_format/text/element_text.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "rewire/base/dtype.h"

namespace rewire::text {
namespace {

// The bits that a text stands for, or the error's message.
std::string Parsed(DLDataType dtype, const std::string& text) {
  std::uint64_t bits = 0;
  const Status status = ParseElement(dtype, text, reinterpret_cast<std::byte*>(&bits));
  return status ? std::to_string(bits) : status.error().message();
}

// Checks that a bit pattern comes back from its text, and gives the text.
std::string CheckRoundTrip(DLDataType dtype, std::uint64_t bits) {
  std::string text = ElementText(dtype, reinterpret_cast<const std::byte*>(&bits));
  std::uint64_t again = 0;
  const Status status = ParseElement(dtype, text, reinterpret_cast<std::byte*>(&again));
  if (!status || again != bits) {
    INFO(DTypeName(dtype) << " " << bits << " is written '" << text << "' and read " << again);
    CHECK(false);
  }
  return text;
}

TEST_CASE("every 16-bit float comes back") {
  for (std::uint32_t bits = 0; bits < 1u << 16; ++bits) {
    CheckRoundTrip(kFloat16, bits);
    CheckRoundTrip(MakeDType(kBFloat, 16), bits);
  }
}

TEST_CASE("every small integer comes back") {
  for (std::uint32_t bits = 0; bits < 1u << 16; ++bits) {
    CheckRoundTrip(MakeDType(kInt, 16), bits);
    CheckRoundTrip(MakeDType(kUInt, 16), bits);
  }
  for (std::uint32_t bits = 0; bits < 1u << 8; ++bits) {
    CheckRoundTrip(kInt8, bits);
    CheckRoundTrip(kUInt8, bits);
  }
}

TEST_CASE("random 32- and 64-bit patterns come back, NaNs with their payload") {
  std::mt19937_64 random(1);
  for (int i = 0; i < 200'000; ++i) {
    const std::uint64_t bits = random();
    CheckRoundTrip(kFloat64, bits);
    CheckRoundTrip(kInt64, bits);
    CheckRoundTrip(MakeDType(kUInt, 64), bits);
    CheckRoundTrip(kFloat32, bits >> 32);
    CheckRoundTrip(kInt32, bits >> 32);
    // Exponents of all ones and all zeros are rare among random patterns.
    CheckRoundTrip(kFloat32, (bits >> 32) | 0x7F800000u);
    CheckRoundTrip(kFloat32, (bits >> 32) & 0x807FFFFFu);
    CheckRoundTrip(kFloat64, bits | 0x7FF0000000000000u);
    CheckRoundTrip(kFloat64, bits & 0x800FFFFFFFFFFFFFu);
  }
}

TEST_CASE("spelling") {
  CHECK(CheckRoundTrip(kFloat32, 0x3DCCCCCD) == "0.1");
  CHECK(CheckRoundTrip(kFloat32, 0x80000000) == "-0");
  CHECK(CheckRoundTrip(kFloat32, 0x7FC00000) == "nan");
  CHECK(CheckRoundTrip(kFloat32, 0xFFC00000) == "nan:0xffc00000");
  CHECK(CheckRoundTrip(kFloat32, 0xFF800000) == "-inf");
  CHECK(CheckRoundTrip(kFloat16, 0x7E00) == "nan");
  CHECK(CheckRoundTrip(kFloat16, 0x7E01) == "nan:0x7e01");
  CHECK(CheckRoundTrip(kInt8, 0x80) == "-128");
  CHECK(CheckRoundTrip(kBool8, 1) == "true");
  const std::byte two{2};
  CHECK(ElementText(kBool8, &two).empty());
  CHECK(DoubleText(2) == "2.0");
  CHECK(DoubleText(1e300) == "1e+300");
  CHECK(DoubleText(-std::numeric_limits<double>::infinity()) == "-inf");
}

TEST_CASE("16-bit floats round to nearest, ties to even") {
  CHECK(Parsed(kFloat16, "1") == std::to_string(0x3C00));
  CHECK(Parsed(kFloat16, "1.00048828125") == std::to_string(0x3C00));  // halfway to the next: down to even
  CHECK(Parsed(kFloat16, "1.00146484375") == std::to_string(0x3C02));  // halfway: up to even
  CHECK(Parsed(kFloat16, "65519.99") == std::to_string(0x7BFF));
  CHECK(Parsed(kFloat16, "65520") == "'65520' does not fit f16");
  CHECK(Parsed(kFloat16, "5.9604644775390625e-08") == "1");   // the smallest subnormal
  CHECK(Parsed(kFloat16, "2.98023223876953125e-08") == "0");  // halfway to it
  CHECK(Parsed(kFloat16, "6.097555160522461e-05") == std::to_string(0x3FF));
  CHECK(Parsed(kFloat16, "6.102025508880615e-05") == std::to_string(0x400));  // rounds up to a normal
  CHECK(Parsed(MakeDType(kBFloat, 16), "3.4e38") == "'3.4e38' does not fit bf16");
}

TEST_CASE("what is no element is refused") {
  CHECK(Parsed(kFloat32, "x") == "'x' is no f32 value");
  CHECK(Parsed(kFloat32, "1.5f") == "'1.5f' is no f32 value");
  CHECK(Parsed(kFloat32, "") == "'' is no f32 value");
  CHECK(Parsed(kFloat32, "1e39") == "'1e39' does not fit f32");
  CHECK(Parsed(kFloat32, "1e-60") == "0");
  CHECK(Parsed(kFloat64, "1e400") == "'1e400' is no f64 value");
  CHECK(Parsed(kFloat64, "1e-400") == "0");
  CHECK(Parsed(kFloat32, "nan:0x7f800000") == "'nan:0x7f800000' does not give the bits of a f32 NaN");
  CHECK(Parsed(kFloat32, "nan:0x17fc00000") == "'nan:0x17fc00000' does not give the bits of a f32 NaN");
  CHECK(Parsed(kInt8, "128") == "'128' does not fit i8");
  CHECK(Parsed(kInt8, "-129") == "'-129' does not fit i8");
  CHECK(Parsed(kInt8, "1.0") == "'1.0' is no i8 value");
  CHECK(Parsed(kUInt8, "-1") == "'-1' does not fit u8");
  CHECK(Parsed(kUInt8, "0x100") == "'0x100' does not fit u8");
  CHECK(Parsed(kInt64, "9223372036854775808") == "'9223372036854775808' does not fit i64");
  CHECK(Parsed(kInt64, "99999999999999999999") == "'99999999999999999999' is no i64 value");
  CHECK(Parsed(kBool8, "2") == "'2' is no bool value");
}

TEST_CASE("types without a spelling") {
  CHECK(HasElementText(kBool8));
  CHECK(HasElementText(MakeDType(kBFloat, 16)));
  CHECK_FALSE(HasElementText(MakeDType(kFloat, 32, 2)));
  CHECK_FALSE(HasElementText(MakeDType(kInt, 4)));
  CHECK_FALSE(HasElementText(MakeDType(kComplex, 64)));
  CHECK_FALSE(HasElementText(MakeDType(kFloat, 128)));
  CHECK_FALSE(HasElementText(MakeDType(kBool, 1)));
}

}  // namespace
}  // namespace rewire::text
