// SPDX-License-Identifier: Apache-2.0
// Element types beyond the common ones, conversion between all of them, bits, and kinds of floats.
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "rewire/kernels/cpu/support/half.h"
#include "rewire/tests/kernels/kernel_call.h"
#include "rewire/tests/kernels/not_finite.h"

namespace rewire::test {
namespace {

using kernel::cpu::BFloat16;
using kernel::cpu::Float16;

template <typename To, typename From>
std::vector<To> Cast(const std::vector<From>& values) {
  const Shape shape{static_cast<std::int64_t>(values.size())};
  HostTensor x = HostTensor::Of<From>(shape, values);
  HostTensor out = HostTensor::Empty<To>(shape);
  REQUIRE(Run("rewire.cast", {&x, &out}) == "");
  return out.values<To>();
}

template <typename Half>
std::vector<Half> Halves(const std::vector<float>& values) {
  return std::vector<Half>(values.begin(), values.end());
}

TEST_CASE("every 16-bit float becomes a float and comes back") {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    Float16 half;
    half.bits = static_cast<std::uint16_t>(bits);
    BFloat16 brain;
    brain.bits = static_cast<std::uint16_t>(bits);
    const auto wide = static_cast<float>(half);
    const auto wide_brain = static_cast<float>(brain);
    // The value from its definition.
    const int exponent = static_cast<int>(bits >> 10 & 31);
    const double mantissa = static_cast<double>(bits & 1023) / 1024;
    const double sign = (bits & 0x8000) != 0 ? -1 : 1;
    if (exponent != 31) {
      const double value =
          exponent == 0 ? std::ldexp(mantissa, -14) : std::ldexp(1 + mantissa, exponent - 15);
      if (static_cast<double>(wide) != sign * value) FAIL("bits " << bits << " are " << wide);
    }
    if (std::isnan(wide) != (exponent == 31 && mantissa != 0)) FAIL("NaN at " << bits);
    if (!std::isnan(wide) && Float16(wide).bits != bits) FAIL("f16 bits " << bits);
    if (!std::isnan(wide_brain) && BFloat16(wide_brain).bits != bits) FAIL("bf16 bits " << bits);
    if (std::isnan(wide) && !std::isnan(static_cast<float>(Float16(wide)))) FAIL("f16 lost NaN at " << bits);
  }
}

TEST_CASE("floats round to the nearest 16-bit float, half to even") {
  const std::pair<float, std::uint16_t> cases[] = {
      {1.0f, 0x3C00},
      {1.0f + 0x1p-11f, 0x3C00},
      {1.0f + 0x3p-11f, 0x3C02},
      {1.0f + 0x1.01p-11f, 0x3C01},
      {65504.0f, 0x7BFF},
      {65519.0f, 0x7BFF},
      {65520.0f, 0x7C00},
      {1e30f, 0x7C00},
      {-kInf, 0xFC00},
      {0x1p-24f, 0x0001},
      {0x1p-25f, 0x0000},
      {0x1.8p-25f, 0x0001},
      {0x1.ff8p-15f, 0x03FF},
      {0x1.ffcp-15f, 0x0400},
      {-0.0f, 0x8000},
      {1e-30f, 0x0000},
  };
  for (const auto& [value, bits] : cases) {
    INFO(value);
    CHECK(Float16(value).bits == bits);
  }
  CHECK(BFloat16(1.0f + 0x1p-8f).bits == 0x3F80);
  CHECK(BFloat16(1.0f + 0x3p-8f).bits == 0x3F82);
  CHECK(BFloat16(3.4e38f).bits == 0x7F80);
  CHECK(std::isnan(static_cast<float>(BFloat16(kNaN))));
}

TEST_CASE("conversion is defined between all element types") {
  CHECK(Cast<std::int16_t, float>({1.9f, -1.9f, 1e9f, -1e9f, kNaN}) ==
        std::vector<std::int16_t>{1, -1, 32767, -32768, 0});
  CHECK(Cast<std::uint64_t, double>({-1, 1e30, 5.5}) ==
        std::vector<std::uint64_t>{0, std::numeric_limits<std::uint64_t>::max(), 5});
  CHECK(Cast<std::uint32_t, std::int8_t>({-1, 5}) == std::vector<std::uint32_t>{0xFFFFFFFFu, 5});
  CHECK(Cast<std::int64_t, std::uint32_t>({0xFFFFFFFFu}) == std::vector<std::int64_t>{0xFFFFFFFF});
  CHECK(Cast<std::int8_t, std::uint16_t>({0x1FF}) == std::vector<std::int8_t>{-1});
  CHECK(Cast<float, Float16>(Halves<Float16>({0.5f, -2})) == std::vector<float>{0.5f, -2});
  CHECK(Cast<std::int32_t, BFloat16>(Halves<BFloat16>({3, -300, kInf})) ==
        std::vector<std::int32_t>{3, -300, std::numeric_limits<std::int32_t>::max()});
  CHECK(Cast<float, bool>({true, false}) == std::vector<float>{1, 0});
  const auto half = Cast<Float16, std::int64_t>({2049, 100000});
  CHECK(half[0].bits == 0x6800);
  CHECK(half[1].bits == 0x7C00);
  const auto truth = Cast<bool, Float16>(Halves<Float16>({0, -0.0f, kNaN, 1e-7f}));
  CHECK(truth == std::vector<bool>{false, false, true, true});
}

template <typename T>
std::vector<double> Binary(const std::string& name, const std::vector<double>& a,
                           const std::vector<double>& b) {
  const Shape shape{static_cast<std::int64_t>(a.size())};
  std::vector<T> left, right;
  for (double value : a) left.push_back(T(static_cast<float>(value)));
  for (double value : b) right.push_back(T(static_cast<float>(value)));
  HostTensor x = HostTensor::Of<T>(shape, left);
  HostTensor y = HostTensor::Of<T>(shape, right);
  HostTensor out = HostTensor::Empty<T>(shape);
  REQUIRE(Run(name, {&x, &y, &out}) == "");
  std::vector<double> values;
  for (T value : out.values<T>()) values.push_back(static_cast<double>(static_cast<float>(value)));
  return values;
}

TEMPLATE_TEST_CASE("arithmetic takes every number", "", std::int16_t, std::uint16_t, std::uint32_t,
                   std::uint64_t, Float16, BFloat16) {
  using Values = std::vector<double>;
  CHECK(Binary<TestType>("rewire.add", {1, 2, 100}, {3, 4, 27}) == Values{4, 6, 127});
  CHECK(Binary<TestType>("rewire.sub", {9, 4}, {3, 4}) == Values{6, 0});
  CHECK(Binary<TestType>("rewire.mul", {9, 4}, {3, 4}) == Values{27, 16});
  CHECK(Binary<TestType>("rewire.div", {9, 4}, {3, 4}) == Values{3, 1});
  CHECK(Binary<TestType>("rewire.mod", {9, 4}, {5, 4}) == Values{4, 0});
  CHECK(Binary<TestType>("rewire.pow", {3, 2}, {3, 5}) == Values{27, 32});
  CHECK(Binary<TestType>("rewire.min", {3, 2}, {2, 5}) == Values{2, 2});
  CHECK(Binary<TestType>("rewire.max", {3, 2}, {2, 5}) == Values{3, 5});
}

TEST_CASE("signs matter where they should in 16-bit integers") {
  using Values = std::vector<double>;
  CHECK(Binary<std::int16_t>("rewire.max", {-3, 2}, {2, -5}) == Values{2, 2});
  CHECK(Binary<std::int16_t>("rewire.sub", {-30000}, {30000}) == Values{5536});
  CHECK(Binary<std::int16_t>("rewire.div", {-9}, {2}) == Values{-4});
  CHECK(Binary<std::uint16_t>("rewire.sub", {1}, {2}) == Values{65535});
  CHECK(Binary<Float16>("rewire.mod", {-5}, {3}) == Values{1});
  CHECK(Binary<Float16>("rewire.prelu", {-5, 5}, {0.5, 0.5}) == Values{-2.5, 5});
}

TEST_CASE("a power's exponent may have another type") {
  HostTensor base = HostTensor::Of<std::int32_t>({3}, {2, -3, 10});
  HostTensor exponent = HostTensor::Of<float>({3}, {3, 3, 30});
  HostTensor out = HostTensor::Empty<std::int32_t>({3});
  REQUIRE(Run("rewire.pow", {&base, &exponent, &out}) == "");
  CHECK(out.values<std::int32_t>() ==
        std::vector<std::int32_t>{8, -27, std::numeric_limits<std::int32_t>::max()});
  HostTensor floats = HostTensor::Of<float>({2, 1}, {2, 3});
  HostTensor whole = HostTensor::Of<std::int64_t>({2}, {2, -1});
  HostTensor powers = HostTensor::Empty<float>({2, 2});
  REQUIRE(Run("rewire.pow", {&floats, &whole, &powers}) == "");
  CHECK(powers.values<float>() == std::vector<float>{4, 0.5f, 9, 1.0f / 3});
  CHECK(Run("rewire.pow", {&floats, &base, &powers}) ==
        "ValueError: rewire.pow: out has shape [2, 2], expected [2, 3]");
}

TEST_CASE("bits are combined and shifted") {
  HostTensor a = HostTensor::Of<std::uint8_t>({3}, {0b1100, 0xFF, 1});
  HostTensor b = HostTensor::Of<std::uint8_t>({3}, {0b1010, 4, 8});
  HostTensor out = HostTensor::Empty<std::uint8_t>({3});
  using U8 = std::vector<std::uint8_t>;
  REQUIRE(Run("rewire.bit_and", {&a, &b, &out}) == "");
  CHECK(out.values<std::uint8_t>() == U8{0b1000, 4, 0});
  REQUIRE(Run("rewire.bit_or", {&a, &b, &out}) == "");
  CHECK(out.values<std::uint8_t>() == U8{0b1110, 0xFF, 9});
  REQUIRE(Run("rewire.bit_xor", {&a, &b, &out}) == "");
  CHECK(out.values<std::uint8_t>() == U8{0b0110, 0xFB, 9});
  REQUIRE(Run("rewire.bit_not", {&a, &out}) == "");
  CHECK(out.values<std::uint8_t>() == U8{0xF3, 0, 0xFE});
  HostTensor by = HostTensor::Of<std::uint8_t>({3}, {2, 4, 8});
  REQUIRE(Run("rewire.bit_shift", {&a, &by, &out}, {{"direction", "LEFT"}}) == "");
  CHECK(out.values<std::uint8_t>() == U8{0b110000, 0xF0, 0});
  REQUIRE(Run("rewire.bit_shift", {&a, &by, &out}, {{"direction", "RIGHT"}}) == "");
  CHECK(out.values<std::uint8_t>() == U8{0b11, 0xF, 0});
  HostTensor floats = HostTensor::Random({3}, 1);
  CHECK(Run("rewire.bit_not", {&floats, &floats}) ==
        "TypeError: rewire.bit_not: x has dtype f32, expected one of i64, i32, i8, u8, i16, u16, u32, u64");
  CHECK(Run("rewire.bit_shift", {&a, &by, &out}) ==
        "ValueError: rewire.bit_shift: attribute 'direction' is missing");
}

TEST_CASE("kinds of floats") {
  HostTensor x = HostTensor::Of<float>({4}, {1, kInf, -kInf, kNaN});
  HostTensor out = HostTensor::Empty<bool>({4});
  using Bytes = std::vector<std::uint8_t>;
  REQUIRE(Run("rewire.isnan", {&x, &out}) == "");
  CHECK(out.values<std::uint8_t>() == Bytes{0, 0, 0, 1});
  REQUIRE(Run("rewire.isinf", {&x, &out}) == "");
  CHECK(out.values<std::uint8_t>() == Bytes{0, 1, 1, 0});
  REQUIRE(Run("rewire.isinf", {&x, &out}, {{"detect_negative", 0}}) == "");
  CHECK(out.values<std::uint8_t>() == Bytes{0, 1, 0, 0});
  REQUIRE(Run("rewire.isinf", {&x, &out}, {{"detect_positive", 0}}) == "");
  CHECK(out.values<std::uint8_t>() == Bytes{0, 0, 1, 0});
}

TEST_CASE("the later activations follow their formulas") {
  const std::vector<float> values = {-3, -0.5f, 0, 0.25f, 2, kNaN};
  HostTensor x = HostTensor::Of<float>({6}, values);
  HostTensor out = HostTensor::Empty<float>({6});
  const auto check = [&](const char* name, const AttributeList& attributes, auto expected) {
    REQUIRE(Run(name, {&x, &out}, attributes) == "");
    for (std::size_t i = 0; i + 1 < values.size(); ++i) {
      INFO(name << " of " << values[i]);
      CHECK(static_cast<double>(out.values<float>()[i]) ==
            Approx(expected(static_cast<double>(values[i]))).margin(1e-6));
    }
    CHECK(std::isnan(out.values<float>()[5]) == std::isnan(static_cast<double>(expected(double{kNaN}))));
  };
  check("rewire.celu", {{"alpha", 2.0}}, [](double v) { return v < 0 ? 2 * (std::exp(v / 2) - 1) : v; });
  check("rewire.thresholded_relu", {{"alpha", 0.25}}, [](double v) { return v > 0.25 ? v : 0; });
  check("rewire.shrink", {{"lambd", 0.4}, {"bias", 0.1}}, [](double v) {
    return v < -0.4 ? v + 0.1 : v > 0.4 ? v - 0.1 : 0;
  });
  check("rewire.mish", {}, [](double v) { return v * std::tanh(std::log(1 + std::exp(v))); });
}

}  // namespace
}  // namespace rewire::test
