// SPDX-License-Identifier: Apache-2.0
#include "rewire/tools/run/compare.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <initializer_list>
#include <limits>

#include "rewire/base/dtype.h"
#include "rewire/vm/tensor.h"

namespace rewire::tools {
namespace {

template <typename T>
HostTensor Of(std::vector<std::int64_t> shape, std::initializer_list<T> elements) {
  HostTensor tensor;
  tensor.dtype = DTypeOf<T>();
  tensor.shape = std::move(shape);
  tensor.bytes =
      CopyBytes({reinterpret_cast<const std::byte*>(elements.begin()), elements.size() * sizeof(T)});
  return tensor;
}

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr Tolerance kExact{0, 0};

TEST_CASE("the tolerance is numpy's: absolute plus relative to what is expected") {
  const HostTensor expected = Of<double>({2}, {100, 0});
  CHECK(Compare(Of<double>({2}, {101, 0}), expected, {0.01, 0}).equal());
  CHECK_FALSE(Compare(Of<double>({2}, {101.1, 0}), expected, {0.01, 0}).equal());
  CHECK(Compare(Of<double>({2}, {100, 0.5}), expected, {0, 0.5}).equal());
  CHECK(Compare(Of<double>({2}, {101.5, 0.5}), expected, {0.01, 0.5}).equal());
  CHECK_FALSE(Compare(Of<double>({2}, {100, 1e-7}), expected, Tolerance()).equal());
  CHECK(Compare(Of<double>({2}, {100.0009, 1e-9}), expected, Tolerance()).equal());
}

TEST_CASE("NaN equals NaN alone, an infinity itself alone") {
  CHECK(Compare(Of<float>({2}, {kNan, kInfinity}), Of<float>({2}, {kNan, kInfinity}), kExact).equal());
  CHECK_FALSE(Compare(Of<float>({1}, {kNan}), Of<float>({1}, {1}), {1, 1e9}).equal());
  CHECK_FALSE(Compare(Of<float>({1}, {1}), Of<float>({1}, {kNan}), {1, 1e9}).equal());
  CHECK_FALSE(Compare(Of<float>({1}, {-kInfinity}), Of<float>({1}, {kInfinity}), {1, 1e9}).equal());
  CHECK_FALSE(Compare(Of<float>({1}, {1}), Of<float>({1}, {kInfinity}), {1, 1e9}).equal());
}

TEST_CASE("integers are subtracted exactly") {
  constexpr std::int64_t kLarge = (std::int64_t{1} << 53) + 1;
  CHECK_FALSE(Compare(Of<std::int64_t>({1}, {kLarge}), Of<std::int64_t>({1}, {kLarge - 1}), kExact).equal());
  const Comparison extremes = Compare(Of<std::int8_t>({1}, {127}), Of<std::int8_t>({1}, {-128}), kExact);
  CHECK(extremes.worst.difference == 255);
  CHECK(Compare(Of<std::int32_t>({1}, {7}), Of<std::int32_t>({1}, {5}), {0, 2}).equal());
  CHECK_FALSE(Compare(Of<bool>({1}, {true}), Of<bool>({1}, {false}), kExact).equal());
}

TEST_CASE("the worst element is the most different one of those that differ") {
  // The second element is further off, but within its relative tolerance.
  const Comparison comparison =
      Compare(Of<float>({2, 2}, {1, 1050, 3, 4.5F}), Of<float>({2, 2}, {1, 1000, 3.25F, 4}), {0.1, 0});
  CHECK(comparison.different == 1);
  CHECK(comparison.worst.index == std::vector<std::int64_t>{1, 1});
  CHECK(ComparisonText(comparison, "y.npy") ==
        "differs from y.npy in 1 of 4 elements; worst at [1, 1]: expected 4, given 4.5, difference 0.5");
}

TEST_CASE("the text of what is equal and of what cannot be compared") {
  const HostTensor x = Of<float>({2}, {1, 2});
  CHECK(ComparisonText(Compare(x, x, kExact), "y.npy") == "equals y.npy");
  CHECK(ComparisonText(Compare(Of<float>({2}, {1, 2.5F}), x, {0, 1}), "y.npy") ==
        "equals y.npy (largest difference 0.5 at [1])");
  CHECK(ComparisonText(Compare(Of<float>({2, 1}, {1, 2}), x, kExact), "y.npy") ==
        "differs from y.npy: f32[2, 1] given, f32[2] expected");
  CHECK(ComparisonText(Compare(Of<double>({2}, {1, 2}), x, kExact), "y.npy") ==
        "differs from y.npy: f64[2] given, f32[2] expected");
  CHECK(Compare(Of<float>({0}, {}), Of<float>({0}, {}), kExact).equal());
}

TEST_CASE("half precision is compared by value") {
  HostTensor half = Of<std::uint16_t>({2}, {0x3C00, 0x4000});   // 1, 2
  HostTensor other = Of<std::uint16_t>({2}, {0x3C00, 0x4200});  // 1, 3
  half.dtype = other.dtype = kFloat16;
  const Comparison comparison = Compare(half, other, kExact);
  CHECK(comparison.different == 1);
  CHECK(comparison.worst.difference == 1);
  CHECK(comparison.worst.expected == "3");
}

}  // namespace
}  // namespace rewire::tools
