// SPDX-License-Identifier: Apache-2.0
// Values at the edges of what an operator defines: NaN, the first number that an integer does not hold, the
// last window, the sign of what is shifted.
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "rewire/tests/kernels/kernel_call.h"
#include "rewire/tests/kernels/not_finite.h"

namespace rewire::test {
namespace {

using Ints = std::vector<std::int64_t>;

TEST_CASE("NaN anywhere under a window is the largest") {
  for (const std::size_t at : {0U, 1U, 2U}) {
    std::vector<float> values = {3, 1, 2};
    values[at] = kNaN;
    HostTensor x = HostTensor::Of<float>({1, 1, 3}, values);
    HostTensor out = HostTensor::Empty<float>({1, 1, 1});
    HostTensor where = HostTensor::Empty<std::int64_t>({1, 1, 1});
    REQUIRE(Run("rewire.max_pool", {&x, &out}, {{"kernel_shape", Ints{3}}}) == "");
    CHECK(std::isnan(out.values<float>()[0]));
    REQUIRE(Run("rewire.max_pool", {&x, &out, &where}, {{"kernel_shape", Ints{3}}}) == "");
    CHECK(std::isnan(out.values<float>()[0]));
    HostTensor last = HostTensor::Of<float>({1, 3, 1}, values);
    REQUIRE(Run("rewire.max_pool", {&last, &out}, {{"kernel_shape", Ints{3}}, {"layout", "NHWC"}}) == "");
    CHECK(std::isnan(out.values<float>()[0]));
  }
}

TEST_CASE("NaN anywhere is the extreme of a reduction") {
  for (const char* kernel : {"rewire.reduce_min", "rewire.reduce_max"}) {
    for (const std::int64_t size : {3, 40}) {
      for (const std::int64_t at : {std::int64_t{0}, size / 2, size - 1}) {
        HostTensor x = HostTensor::Random({size}, 7);
        x.elements<float>()[at] = kNaN;
        HostTensor out = HostTensor::Empty<float>({1});
        CAPTURE(kernel, size, at);
        REQUIRE(Run(kernel, {&x, &out}) == "");
        CHECK(std::isnan(out.values<float>()[0]));
        // The same along the outer axis, where rows are joined.
        x.SetView({size, 1}, {1, 1});
        out.SetView({1, 1}, {1, 1});
        REQUIRE(Run(kernel, {&x, &out}, {{"axes", Ints{0}}}) == "");
        CHECK(std::isnan(out.values<float>()[0]));
      }
    }
  }
}

TEST_CASE("a window that begins behind the image is left out in ceil_mode") {
  const AttributeList attributes = {
      {"kernel_shape", Ints{2}}, {"strides", Ints{3}}, {"pads", Ints{0, 1}}, {"ceil_mode", 1}};
  HostTensor x = HostTensor::Of<float>({1, 1, 3}, {1, 2, 3});
  HostTensor one = HostTensor::Empty<float>({1, 1, 1}), two = HostTensor::Empty<float>({1, 1, 2});
  REQUIRE(Run("rewire.max_pool", {&x, &one}, attributes) == "");
  CHECK(one.values<float>() == std::vector<float>{2});
  // One element more, and it begins at the last one.
  HostTensor longer = HostTensor::Of<float>({1, 1, 4}, {1, 2, 3, 4});
  REQUIRE(Run("rewire.max_pool", {&longer, &two}, attributes) == "");
  CHECK(two.values<float>() == std::vector<float>{2, 4});
}

TEST_CASE("a mean counts the pads, but not what lies behind them") {
  HostTensor x = HostTensor::Of<float>({1, 1, 4}, {1, 2, 3, 4});
  HostTensor out = HostTensor::Empty<float>({1, 1, 2});
  AttributeList attributes = {{"kernel_shape", Ints{3}}, {"dilations", Ints{2}}, {"strides", Ints{2}},
                              {"pads", Ints{1, 1}},      {"ceil_mode", 1},       {"count_include_pad", 1}};
  // Windows over pad, 2, 4 and over 2, 4, nothing.
  REQUIRE(Run("rewire.avg_pool", {&x, &out}, attributes) == "");
  CHECK(out.values<float>() == std::vector<float>{2, 3});
  attributes.back().second = 0;
  REQUIRE(Run("rewire.avg_pool", {&x, &out}, attributes) == "");
  CHECK(out.values<float>() == std::vector<float>{3, 3});
}

template <typename From, typename To>
std::vector<To> CastEdges(const std::vector<From>& values) {
  HostTensor x = HostTensor::Of<From>({static_cast<std::int64_t>(values.size())}, values);
  HostTensor out = HostTensor::Empty<To>({static_cast<std::int64_t>(values.size())});
  REQUIRE(Run("rewire.cast", {&x, &out}) == "");
  return out.values<To>();
}

TEST_CASE("a float that an integer does not hold becomes its limit") {
  using I32 = std::numeric_limits<std::int32_t>;
  using I64 = std::numeric_limits<std::int64_t>;
  CHECK(CastEdges<float, std::int32_t>(
            {0x1p31F, 0x1.fffffep30F, -0x1p31F, -0x1.000002p31F, kInf, -kInf, kNaN}) ==
        std::vector<std::int32_t>{I32::max(), 2147483520, I32::min(), I32::min(), I32::max(), I32::min(), 0});
  CHECK(CastEdges<double, std::int32_t>({0x1p31, 2147483647.5, -0x1p31 - 0.5}) ==
        std::vector<std::int32_t>{I32::max(), I32::max(), I32::min()});
  CHECK(CastEdges<double, std::int64_t>({0x1p63, -0x1p63, 0x1.fffffffffffffp62}) ==
        std::vector<std::int64_t>{I64::max(), I64::min(), 9223372036854774784});
  CHECK(CastEdges<float, std::uint8_t>({255.5F, 256, -0.5F, -1}) ==
        std::vector<std::uint8_t>{255, 255, 0, 0});
}

TEST_CASE("a zero that is no number is stored as the least") {
  HostTensor x = HostTensor::Of<float>({2}, {-kInf, 1});
  HostTensor out = HostTensor::Empty<std::uint8_t>({2}), zero = HostTensor::Empty<std::uint8_t>({});
  HostTensor scale = HostTensor::Empty<float>({});
  REQUIRE(Run("rewire.dynamic_quantize_linear", {&x, &out, &scale, &zero}) == "");
  CHECK(std::isinf(scale.values<float>()[0]));
  CHECK(zero.values<std::uint8_t>()[0] == 0);
}

TEST_CASE("a signed number keeps its sign when shifted to the right") {
  using I8 = std::vector<std::int8_t>;
  HostTensor a = HostTensor::Of<std::int8_t>({6}, {-8, -1, -128, 127, -8, -8});
  HostTensor by = HostTensor::Of<std::int8_t>({6}, {1, 1, 7, 6, 8, -1});
  HostTensor out = HostTensor::Empty<std::int8_t>({6});
  REQUIRE(Run("rewire.bit_shift", {&a, &by, &out}, {{"direction", "RIGHT"}}) == "");
  CHECK(out.values<std::int8_t>() == I8{-4, -1, -1, 1, -1, -1});
  REQUIRE(Run("rewire.bit_shift", {&a, &by, &out}, {{"direction", "LEFT"}}) == "");
  CHECK(out.values<std::int8_t>() == I8{-16, -2, 0, -64, 0, 0});
  HostTensor wide = HostTensor::Of<std::int64_t>({2}, {-8, std::numeric_limits<std::int64_t>::min()});
  HostTensor places = HostTensor::Of<std::int64_t>({2}, {64, 63}),
             shifted = HostTensor::Empty<std::int64_t>({2});
  REQUIRE(Run("rewire.bit_shift", {&wide, &places, &shifted}, {{"direction", "RIGHT"}}) == "");
  CHECK(shifted.values<std::int64_t>() == std::vector<std::int64_t>{-1, -1});
}

TEMPLATE_TEST_CASE("bytes are shifted by every number of places", "", std::uint8_t, std::int8_t) {
  std::vector<TestType> bytes, places, left, right;
  for (int x = 0; x < 256; ++x) {
    for (int by : {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 64, 127, 128, 255}) {
      const auto byte = static_cast<TestType>(x), number = static_cast<TestType>(by);
      const bool stays = by < 8;
      bytes.push_back(byte);
      places.push_back(number);
      left.push_back(static_cast<TestType>(stays ? byte << by : 0));
      right.push_back(static_cast<TestType>(stays ? byte >> by : byte < 0 ? -1 : 0));
    }
  }
  const auto count = static_cast<std::int64_t>(bytes.size());
  HostTensor a = HostTensor::Of<TestType>({count}, bytes), by = HostTensor::Of<TestType>({count}, places);
  HostTensor out = HostTensor::Empty<TestType>({count});
  REQUIRE(Run("rewire.bit_shift", {&a, &by, &out}, {{"direction", "LEFT"}}) == "");
  CHECK(out.values<TestType>() == left);
  REQUIRE(Run("rewire.bit_shift", {&a, &by, &out}, {{"direction", "RIGHT"}}) == "");
  CHECK(out.values<TestType>() == right);
}

// Forward and back, of even and odd lengths and of one that is no power of two.
TEST_CASE("an inverse onesided transform gives the real signal") {
  for (const std::int64_t size : {2, 5, 8, 10}) {
    HostTensor x = HostTensor::Random({2, size, 3, 1}, 5);
    HostTensor bins = HostTensor::Empty<float>({2, size / 2 + 1, 3, 2}),
               back = HostTensor::Empty<float>({2, size, 3, 1});
    HostTensor length = HostTensor::Of<std::int64_t>({}, {size});
    REQUIRE(Run("rewire.dft", {&x, &bins}, {{"onesided", 1}}) == "");
    REQUIRE(Run("rewire.dft", {&bins, &length, &back}, {{"onesided", 1}, {"inverse", 1}}) == "");
    for (std::int64_t i = 0; i < x.size(); ++i)
      CHECK(back.elements<float>()[i] == Approx(x.elements<float>()[i]).margin(1e-5));
    // Without a length there are as many numbers as an even signal has.
    if (size % 2 == 0) REQUIRE(Run("rewire.dft", {&bins, &back}, {{"onesided", 1}, {"inverse", 1}}) == "");
    HostTensor shape = HostTensor::Of<std::int64_t>({4}, {2, size / 2 + 1, 3, 2}),
               result = HostTensor::Empty<std::int64_t>({4});
    REQUIRE(Run("rewire.shape.dft", {&shape, &length, &result}, {{"onesided", 1}, {"inverse", 1}}) == "");
    CHECK(result.values<std::int64_t>() == Ints{2, size, 3, 1});
  }
  HostTensor real = HostTensor::Random({1, 4, 1}, 1), out = HostTensor::Empty<float>({1, 6, 1});
  CHECK(Run("rewire.dft", {&real, &out}, {{"onesided", 1}, {"inverse", 1}}) ==
        "ValueError: rewire.dft: x has shape [1, 4, 1], expected [..., 2] for an inverse onesided transform");
}

}  // namespace
}  // namespace rewire::test
