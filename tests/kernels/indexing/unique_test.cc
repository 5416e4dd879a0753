// SPDX-License-Identifier: Apache-2.0
// The different elements and slices of a tensor, against examples by hand and an ordered map.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <limits>
#include <map>
#include <random>
#include <type_traits>
#include <utility>
#include <vector>

#include "rewire/tests/kernels/kernel_call.h"

namespace rewire::test {
namespace {

using F = std::vector<float>;
using I = std::vector<std::int64_t>;

TEST_CASE("unique finds the different elements and slices") {
  HostTensor x = HostTensor::Of<float>({6}, {2, 1, 1, 3, 4, 3});
  HostTensor count = HostTensor::Empty<std::int64_t>({1});
  REQUIRE(Run("rewire.shape.unique", {&x, &count}) == "");
  REQUIRE(count.values<std::int64_t>() == I{4});
  HostTensor out = HostTensor::Empty<float>({4});
  HostTensor indices = HostTensor::Empty<std::int64_t>({4});
  HostTensor inverse = HostTensor::Empty<std::int64_t>({6});
  HostTensor counts = HostTensor::Empty<std::int64_t>({4});
  REQUIRE(Run("rewire.unique", {&x, &out, &indices, &inverse, &counts}) == "");
  CHECK(out.values<float>() == F{1, 2, 3, 4});
  CHECK(indices.values<std::int64_t>() == I{1, 0, 3, 4});
  CHECK(inverse.values<std::int64_t>() == I{1, 0, 0, 2, 3, 2});
  CHECK(counts.values<std::int64_t>() == I{2, 1, 2, 1});
  REQUIRE(Run("rewire.unique", {&x, &out, &indices, &inverse, &counts}, {{"sorted", 0}}) == "");
  CHECK(out.values<float>() == F{2, 1, 3, 4});
  CHECK(inverse.values<std::int64_t>() == I{0, 1, 1, 2, 3, 2});
  HostTensor rows = HostTensor::Of<std::int32_t>({3, 2}, {1, 0, 0, 5, 1, 0});
  HostTensor two = HostTensor::Empty<std::int32_t>({2, 2});
  HostTensor indices2 = HostTensor::Empty<std::int64_t>({2});
  HostTensor inverse3 = HostTensor::Empty<std::int64_t>({3});
  HostTensor counts2 = HostTensor::Empty<std::int64_t>({2});
  REQUIRE(Run("rewire.unique", {&rows, &two, &indices2, &inverse3, &counts2}, {{"axis", 0}}) == "");
  CHECK(two.values<std::int32_t>() == std::vector<std::int32_t>{0, 5, 1, 0});
  CHECK(inverse3.values<std::int64_t>() == I{1, 0, 1});
  CHECK(Run("rewire.unique", {&x, &two, &indices2, &inverse3, &counts2}) ==
        "TypeError: rewire.unique: out has dtype i32, expected f32 as x");
  HostTensor short_out = HostTensor::Empty<float>({3});
  CHECK(Run("rewire.unique", {&x, &short_out, &indices, &inverse, &counts}) ==
        "ValueError: rewire.unique: out has shape [3], expected [4]");
}

// rewire.unique of a list, beside a map that is in order.
template <typename T>
void CheckUnique(const std::vector<T>& values) {
  const auto is_less = [](T a, T b) { return b != b ? a == a : a < b; };
  std::map<T, std::vector<std::int64_t>, decltype(is_less)> places(is_less);
  std::vector<T> appearing;
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::vector<std::int64_t>& of_value = places[values[i]];
    if (of_value.empty()) appearing.push_back(values[i]);
    of_value.push_back(static_cast<std::int64_t>(i));
  }
  const auto size = static_cast<std::int64_t>(values.size()),
             found = static_cast<std::int64_t>(places.size());
  HostTensor x = HostTensor::Of<T>({size}, values), count = HostTensor::Empty<std::int64_t>({1});
  REQUIRE(Run("rewire.shape.unique", {&x, &count}) == "");
  REQUIRE(count.values<std::int64_t>() == I{found});
  for (int sorted : {0, 1}) {
    CAPTURE(sorted, size, found);
    HostTensor out = HostTensor::Empty<T>({found}), indices = HostTensor::Empty<std::int64_t>({found});
    HostTensor counts = HostTensor::Empty<std::int64_t>({found});
    HostTensor inverse = HostTensor::Empty<std::int64_t>({size});
    REQUIRE(Run("rewire.unique", {&x, &out, &indices, &inverse, &counts}, {{"sorted", sorted}}) == "");
    std::vector<T> order = appearing;
    if (sorted == 1) std::sort(order.begin(), order.end(), is_less);
    std::int64_t wrong = 0;
    for (std::size_t k = 0; k < order.size(); ++k) {
      const std::vector<std::int64_t>& expected = places[order[k]];
      const T first = values[static_cast<std::size_t>(expected[0])];
      wrong += std::memcmp(&out.elements<T>()[k], &first, sizeof(T)) != 0 ? 1 : 0;
      wrong += indices.elements<std::int64_t>()[k] != expected[0] ? 1 : 0;
      wrong += counts.elements<std::int64_t>()[k] != static_cast<std::int64_t>(expected.size()) ? 1 : 0;
      for (const std::int64_t i : expected)
        wrong += inverse.elements<std::int64_t>()[i] != static_cast<std::int64_t>(k) ? 1 : 0;
    }
    CHECK(wrong == 0);
  }
}

TEMPLATE_TEST_CASE("unique finds few and many different elements of every type", "", float, double,
                   std::int64_t, std::int32_t, std::int8_t, std::uint8_t) {
  std::mt19937 random(11);
  for (const std::size_t size : {1u, 2u, 33u, 3000u, 20000u}) {
    for (const std::int64_t range : {1, 5, 120, 1 << 30}) {
      std::vector<TestType> values(size);
      for (TestType& value : values)
        value = static_cast<TestType>(
            static_cast<std::int64_t>(random() % static_cast<std::uint32_t>(range)) - range / 2);
      if constexpr (std::is_floating_point_v<TestType>) {
        values[size / 2] = std::numeric_limits<TestType>::quiet_NaN();
        values[size / 3] = TestType{-0.0};
        values[size - 1] = values[size / 2];
      }
      CheckUnique(values);
    }
  }
}

TEST_CASE("unique sorts elements that were made to lie in each other's way") {
  std::uint64_t inverse = 0x9E3779B97F4A7C15;  // of itself, modulo 2^64, by Newton's method
  for (int i = 0; i < 6; ++i) inverse *= 2 - 0x9E3779B97F4A7C15 * inverse;
  REQUIRE(inverse * 0x9E3779B97F4A7C15 == 1);
  std::vector<std::int64_t> values;
  for (std::uint64_t i = 0; i < 5000; ++i) values.push_back(static_cast<std::int64_t>(inverse * (i % 4000)));
  CheckUnique(values);
}

TEST_CASE("unique finds different rows and columns of a tensor") {
  std::mt19937 random(12);
  const Shape shape = {3, 50, 4};
  std::vector<float> values(600);
  for (float& value : values) value = static_cast<float>(random() % 2);
  for (std::size_t axis = 0; axis < 3; ++axis) {
    // A slice as the text of its elements.
    const std::int64_t count = shape[axis];
    const std::int64_t inner = axis == 2 ? 1 : axis == 1 ? 4 : 200, outer = 600 / count / inner;
    std::vector<std::vector<float>> slices(static_cast<std::size_t>(count));
    for (std::int64_t i = 0; i < 600; ++i)
      slices[static_cast<std::size_t>(i / inner % count)].push_back(values[static_cast<std::size_t>(i)]);
    std::vector<std::vector<float>> expected = slices;
    std::sort(expected.begin(), expected.end());
    expected.erase(std::unique(expected.begin(), expected.end()), expected.end());
    const auto found = static_cast<std::int64_t>(expected.size());
    Shape result = shape;
    result[axis] = found;
    HostTensor x = HostTensor::Of<float>(shape, values), out = HostTensor::Empty<float>(result);
    HostTensor indices = HostTensor::Empty<std::int64_t>({found});
    HostTensor counts = HostTensor::Empty<std::int64_t>({found});
    HostTensor inverse = HostTensor::Empty<std::int64_t>({count});
    REQUIRE(Run("rewire.unique", {&x, &out, &indices, &inverse, &counts},
                {{"axis", static_cast<std::int64_t>(axis)}}) == "");
    for (std::int64_t o = 0, i = 0; o < outer; ++o) {
      for (std::int64_t k = 0; k < found; ++k) {
        for (std::int64_t j = 0; j < inner; ++j, ++i) {
          CHECK(out.elements<float>()[i] ==
                expected[static_cast<std::size_t>(k)][static_cast<std::size_t>(o * inner + j)]);
        }
      }
    }
    for (std::int64_t i = 0; i < count; ++i) {
      CHECK(expected[static_cast<std::size_t>(inverse.elements<std::int64_t>()[i])] ==
            slices[static_cast<std::size_t>(i)]);
    }
  }
}

}  // namespace
}  // namespace rewire::test
