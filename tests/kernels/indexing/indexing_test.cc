// SPDX-License-Identifier: Apache-2.0
// Gather, scatter, one-hot, order, filters: against small examples by hand and naive loops.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <random>

#include "rewire/tests/kernels/kernel_call.h"
#include "rewire/tests/kernels/targets.h"

namespace rewire::test {
namespace {

using F = std::vector<float>;
using I = std::vector<std::int64_t>;

TEST_CASE("gather takes slices along an axis") {
  HostTensor x = HostTensor::Of<float>({3, 2}, {1, 2, 3, 4, 5, 6});
  HostTensor rows = HostTensor::Of<std::int64_t>({2, 2}, {0, -1, 1, 1});
  HostTensor out = HostTensor::Empty<float>({2, 2, 2});
  REQUIRE(Run("rewire.gather", {&x, &rows, &out}) == "");
  CHECK(out.values<float>() == F{1, 2, 5, 6, 3, 4, 3, 4});
  HostTensor column = HostTensor::Of<std::int32_t>({}, {1});
  HostTensor second = HostTensor::Empty<float>({3});
  REQUIRE(Run("rewire.gather", {&x, &column, &second}, {{"axis", 1}}) == "");
  CHECK(second.values<float>() == F{2, 4, 6});
  HostTensor wrong = HostTensor::Of<std::int64_t>({2, 2}, {0, 0, 3, 0});
  CHECK(Run("rewire.gather", {&x, &wrong, &out}) ==
        "ValueError: rewire.gather: element 2 of indices is 3, expected at least -3 and less than 3 for axis "
        "0 of x");
  HostTensor none = HostTensor::Of<std::int64_t>({0}, {});
  HostTensor empty = HostTensor::Empty<float>({0, 2});
  CHECK(Run("rewire.gather", {&x, &none, &empty}) == "");
}

TEST_CASE("gather_elements and scatter_elements go element by element") {
  HostTensor x = HostTensor::Of<float>({3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9});
  HostTensor indices = HostTensor::Of<std::int64_t>({2, 3}, {1, 2, 0, 2, 0, -3});
  HostTensor taken = HostTensor::Empty<float>({2, 3});
  REQUIRE(Run("rewire.gather_elements", {&x, &indices, &taken}) == "");
  CHECK(taken.values<float>() == F{4, 8, 3, 7, 2, 3});
  HostTensor by_column = HostTensor::Of<std::int32_t>({3, 1}, {2, 0, -1});
  HostTensor one = HostTensor::Empty<float>({3, 1});
  REQUIRE(Run("rewire.gather_elements", {&x, &by_column, &one}, {{"axis", 1}}) == "");
  CHECK(one.values<float>() == F{3, 4, 9});

  HostTensor updates = HostTensor::Of<float>({2, 3}, {10, 20, 30, 40, 50, 60});
  HostTensor out = HostTensor::Empty<float>({3, 3});
  REQUIRE(Run("rewire.scatter_elements", {&x, &indices, &updates, &out}) == "");
  CHECK(out.values<float>() == F{1, 50, 60, 10, 5, 6, 40, 20, 9});
  REQUIRE(Run("rewire.scatter_elements", {&x, &indices, &updates, &out}, {{"reduction", "add"}}) == "");
  CHECK(out.values<float>() == F{1, 52, 93, 14, 5, 6, 47, 28, 9});
  REQUIRE(Run("rewire.scatter_elements", {&x, &indices, &updates, &out}, {{"reduction", "mul"}}) == "");
  CHECK(out.values<float>() == F{1, 100, 5400, 40, 5, 6, 280, 160, 9});
  REQUIRE(Run("rewire.scatter_elements", {&x, &indices, &updates, &out}, {{"reduction", "min"}}) == "");
  CHECK(out.values<float>() == x.values<float>());
  HostTensor flat = HostTensor::Empty<float>({9});
  CHECK(Run("rewire.scatter_elements", {&x, &indices, &updates, &flat}) ==
        "ValueError: rewire.scatter_elements: out has shape [9], expected [3, 3]");
  CHECK(Run("rewire.scatter_nd", {&x, &indices, &updates, &flat}) ==
        "ValueError: rewire.scatter_nd: out has shape [9], expected [3, 3]");
  REQUIRE(Run("rewire.scatter_elements", {&x, &indices, &updates, &x}) == "");  // in place
  CHECK(x.values<float>() == F{1, 50, 60, 10, 5, 6, 40, 20, 9});

  HostTensor wide = HostTensor::Of<std::int64_t>({1, 4}, {0, 0, 0, 0});
  HostTensor four = HostTensor::Empty<float>({1, 4});
  CHECK(Run("rewire.gather_elements", {&x, &wide, &four}) ==
        "ValueError: rewire.gather_elements: indices has shape [1, 4], expected at most x's [3, 3] but along "
        "axis 0");
  HostTensor truth = HostTensor::Of<bool>({1}, {true});
  HostTensor zero = HostTensor::Of<std::int64_t>({1}, {0});
  HostTensor flag = HostTensor::Empty<bool>({1});
  CHECK(Run("rewire.scatter_elements", {&truth, &zero, &truth, &flag}) == "");
  CHECK(Run("rewire.scatter_elements", {&truth, &zero, &truth, &flag}, {{"reduction", "add"}}) ==
        "TypeError: rewire.scatter_elements: x has dtype bool, expected one of f32, i64, i32, f64, i8, u8");
}

TEST_CASE("scatter_elements takes elements of one index at once, in order") {
  // Rows of 40 elements, of one index, of two, and of another one for each element; the last wins.
  constexpr std::int64_t kWidth = 40, kRows = 5;
  std::vector<std::int64_t> places;
  std::vector<float> terms;
  for (std::int64_t i = 0; i < kRows * kWidth; ++i) {
    const std::int64_t row = i / kWidth, column = i % kWidth;
    places.push_back(row < 2 ? 1 : row == 2 ? (column < 17 ? -1 : 0) : row == 3 ? column % 3 : 2);
    terms.push_back(static_cast<float>(i));
  }
  HostTensor indices = HostTensor::Of<std::int64_t>({kRows, kWidth}, places);
  HostTensor updates = HostTensor::Of<float>({kRows, kWidth}, terms);
  HostTensor x = HostTensor::Random({3, kWidth}, 1), out = HostTensor::Empty<float>({3, kWidth});
  for (const char* reduction : {"none", "add"}) {
    CAPTURE(reduction);
    std::vector<float> expected = x.values<float>();
    for (std::size_t i = 0; i < places.size(); ++i) {
      float& place = expected[static_cast<std::size_t>((places[i] + 3) % 3 * kWidth) + i % kWidth];
      place = (reduction == std::string("add") ? place : 0) + terms[i];
    }
    REQUIRE(Run("rewire.scatter_elements", {&x, &indices, &updates, &out}, {{"reduction", reduction}}) == "");
    CHECK(out.values<float>() == expected);
  }
}

TEST_CASE("gather_nd and scatter_nd take slices by tuples") {
  HostTensor x = HostTensor::Of<std::int32_t>({2, 2, 2}, {0, 1, 2, 3, 4, 5, 6, 7});
  HostTensor tuples = HostTensor::Of<std::int64_t>({2, 2}, {0, 1, -1, 0});
  HostTensor out = HostTensor::Empty<std::int32_t>({2, 2});
  REQUIRE(Run("rewire.gather_nd", {&x, &tuples, &out}) == "");
  CHECK(out.values<std::int32_t>() == std::vector<std::int32_t>{2, 3, 4, 5});
  HostTensor each = HostTensor::Of<std::int64_t>({2, 1}, {1, 0});
  REQUIRE(Run("rewire.gather_nd", {&x, &each, &out}, {{"batch_dims", 1}}) == "");
  CHECK(out.values<std::int32_t>() == std::vector<std::int32_t>{2, 3, 4, 5});
  HostTensor updates = HostTensor::Of<std::int32_t>({2, 2}, {10, 20, 30, 40});
  HostTensor written = HostTensor::Empty<std::int32_t>({2, 2, 2});
  REQUIRE(Run("rewire.scatter_nd", {&x, &tuples, &updates, &written}, {{"reduction", "add"}}) == "");
  CHECK(written.values<std::int32_t>() == std::vector<std::int32_t>{0, 1, 12, 23, 34, 45, 6, 7});
  HostTensor beyond = HostTensor::Of<std::int64_t>({2, 2}, {0, 1, 0, 2});
  CHECK(Run("rewire.scatter_nd", {&x, &beyond, &updates, &written}) ==
        "ValueError: rewire.scatter_nd: element 3 of indices is 2, expected at least -2 and less than 2 for "
        "axis 1 "
        "of x");
  HostTensor long_tuples = HostTensor::Of<std::int64_t>({1, 4}, {0, 0, 0, 0});
  CHECK(Run("rewire.gather_nd", {&x, &long_tuples, &out}) ==
        "ValueError: rewire.gather_nd: indices has shape [1, 4]: 4 indices are more than the axes of x [2, "
        "2, 2]");
  HostTensor shape_x = HostTensor::Of<std::int64_t>({3}, {2, 3, 4});
  HostTensor shape_i = HostTensor::Of<std::int64_t>({3}, {2, 5, 1});
  HostTensor shape = HostTensor::Empty<std::int64_t>({3});
  REQUIRE(Run("rewire.shape.gather_nd", {&shape_x, &shape_i, &shape}, {{"batch_dims", 1}}) == "");
  CHECK(shape.values<std::int64_t>() == I{2, 5, 4});
}

TEST_CASE("one_hot marks a place along a new axis") {
  HostTensor indices = HostTensor::Of<float>({2}, {1, -1});
  HostTensor values = HostTensor::Of<float>({2}, {0, 5});
  HostTensor out = HostTensor::Empty<float>({2, 3});
  REQUIRE(Run("rewire.one_hot", {&indices, &values, &out}) == "");
  CHECK(out.values<float>() == F{0, 5, 0, 0, 0, 5});
  HostTensor columns = HostTensor::Empty<float>({3, 2});
  REQUIRE(Run("rewire.one_hot", {&indices, &values, &columns}, {{"axis", 0}}) == "");
  CHECK(columns.values<float>() == F{0, 0, 5, 0, 0, 5});
  HostTensor outside = HostTensor::Of<std::int64_t>({2}, {3, -4});
  REQUIRE(Run("rewire.one_hot", {&outside, &values, &out}) == "");
  CHECK(out.values<float>() == F(6, 0));
  HostTensor shape = HostTensor::Of<std::int64_t>({1}, {2});
  HostTensor depth = HostTensor::Of<float>({}, {7});
  HostTensor result = HostTensor::Empty<std::int64_t>({2});
  REQUIRE(Run("rewire.shape.one_hot", {&shape, &depth, &result}) == "");
  CHECK(result.values<std::int64_t>() == I{2, 7});
  HostTensor negative = HostTensor::Of<std::int64_t>({}, {-1});
  CHECK(Run("rewire.shape.one_hot", {&shape, &negative, &result}) ==
        "ValueError: rewire.shape.one_hot: depth is -1.000000, which is no dimension");
}

TEST_CASE("top_k sorts like a stable sort") {
  HostTensor x = HostTensor::Random({5, 37, 3}, 4);
  auto numbers = x.elements<float>();
  for (std::int64_t i = 0; i < 5 * 37 * 3; i += 4) numbers[i] = 0.25f;  // ties
  for (const bool largest : {true, false}) {
    HostTensor values = HostTensor::Empty<float>({5, 10, 3});
    HostTensor where = HostTensor::Empty<std::int64_t>({5, 10, 3});
    REQUIRE(Run("rewire.top_k", {&x, &values, &where}, {{"axis", 1}, {"largest", largest ? 1 : 0}}) == "");
    for (std::int64_t row = 0; row < 15; ++row) {
      const std::int64_t first = row / 3 * 37 * 3 + row % 3;
      std::vector<std::int64_t> order(37);
      for (std::int64_t i = 0; i < 37; ++i) order[static_cast<std::size_t>(i)] = i;
      std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
        const float left = numbers[first + a * 3];
        const float right = numbers[first + b * 3];
        return largest ? left > right : left < right;
      });
      for (std::int64_t i = 0; i < 10; ++i) {
        const std::int64_t at = row / 3 * 30 + i * 3 + row % 3;
        if (where.elements<std::int64_t>()[at] != order[static_cast<std::size_t>(i)]) FAIL("row " << row);
        if (values.elements<float>()[at] != numbers[first + order[static_cast<std::size_t>(i)] * 3])
          FAIL(row);
      }
    }
  }
  HostTensor nan = HostTensor::Of<float>({3}, {1, std::numeric_limits<float>::quiet_NaN(), 2});
  HostTensor value = HostTensor::Empty<float>({1});
  HostTensor place = HostTensor::Empty<std::int64_t>({1});
  REQUIRE(Run("rewire.top_k", {&nan, &value, &place}) == "");
  CHECK(place.values<std::int64_t>() == I{1});
  HostTensor many = HostTensor::Empty<float>({4});
  HostTensor many_places = HostTensor::Empty<std::int64_t>({4});
  CHECK(Run("rewire.top_k", {&nan, &many, &many_places}) ==
        "ValueError: rewire.top_k: out_values has shape [4], expected [3]");
  FailWorkspace(true);
  CHECK(Run("rewire.top_k", {&nan, &value, &place}) == "MemoryError: the test gives no workspace");
  FailWorkspace(false);
}

TEST_CASE("top_k of one element takes the first of equal ones") {
  HostTensor x = HostTensor::Of<std::int64_t>({2, 5}, {3, 9, -1, 9, -1, 7, 7, 7, 7, 7});
  HostTensor values = HostTensor::Empty<std::int64_t>({2, 1}),
             places = HostTensor::Empty<std::int64_t>({2, 1});
  REQUIRE(Run("rewire.top_k", {&x, &values, &places}) == "");
  CHECK(values.values<std::int64_t>() == I{9, 7});
  CHECK(places.values<std::int64_t>() == I{1, 0});
  REQUIRE(Run("rewire.top_k", {&x, &values, &places}, {{"largest", 0}}) == "");
  CHECK(values.values<std::int64_t>() == I{-1, 7});
  CHECK(places.values<std::int64_t>() == I{2, 0});
}

// Compares top_k along `axis` of [3, 41, 19] with a stable sort, for ties, both zeros and NaN.
template <typename T>
void CheckTopK(std::int64_t k, bool largest, const std::vector<T>& given) {
  constexpr std::int64_t kOuter = 3, kCount = 41, kInner = 19;
  HostTensor x = HostTensor::Of<T>({kOuter, kCount, kInner}, given);
  HostTensor values = HostTensor::Empty<T>({kOuter, k, kInner});
  HostTensor where = HostTensor::Empty<std::int64_t>({kOuter, k, kInner});
  REQUIRE(Run("rewire.top_k", {&x, &values, &where}, {{"axis", 1}, {"largest", largest ? 1 : 0}}) == "");
  const auto below = [](T a, T b) { return b != b ? a == a : a < b; };
  const auto of_values = values.values<T>();
  const auto of_where = where.values<std::int64_t>();
  for (std::int64_t row = 0; row < kOuter * kInner; ++row) {
    const auto at = [&](std::int64_t i, std::int64_t count) {
      return static_cast<std::size_t>(row / kInner * count * kInner + i * kInner + row % kInner);
    };
    I order;
    for (std::int64_t i = 0; i < kCount; ++i) order.push_back(i);
    std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
      const T left = given[at(a, kCount)], right = given[at(b, kCount)];
      return largest ? below(right, left) : below(left, right);
    });
    for (std::int64_t i = 0; i < k; ++i) {
      const std::int64_t expected = order[static_cast<std::size_t>(i)];
      const T element = given[at(expected, kCount)], found = of_values[at(i, k)];
      if (of_where[at(i, k)] != expected || (found != element && element == element))
        FAIL("row " << row << ", place " << i);
    }
  }
}

TEST_CASE("top_k of columns orders every type") {
  const auto check = [](auto tag, const auto& make) {
    using T = decltype(tag);
    std::vector<T> given;
    for (std::uint32_t i = 0; i < 3 * 41 * 19; ++i) given.push_back(make(i * 2654435761u >> 20));
    for (const std::int64_t k : {1, 3, 13, 30, 41}) {
      for (const bool largest : {true, false}) CheckTopK<T>(k, largest, given);
    }
  };
  const auto number = [](auto tag) {
    return
        [](std::uint32_t i) { return static_cast<decltype(tag)>(static_cast<std::int64_t>(i % 600) - 300); };
  };
  ForEachTarget([&] {
    check(float(), [](std::uint32_t i) {
      if (i % 37 == 0) return std::numeric_limits<float>::quiet_NaN();
      if (i % 41 == 0) return i % 2 == 0 ? -0.0f : 0.0f;
      if (i % 43 == 0) return i % 2 == 0 ? HUGE_VALF : -HUGE_VALF;
      return (static_cast<float>(i % 101) - 50) / 3;
    });
    check(double(), number(double()));
    check(std::int64_t(), number(std::int64_t()));
    check(std::int32_t(), number(std::int32_t()));
    check(std::int8_t(), number(std::int8_t()));
    check(std::uint8_t(), number(std::uint8_t()));
    check(std::uint32_t(), number(std::uint32_t()));
    check(std::uint64_t(), number(std::uint64_t()));
  });
}

TEST_CASE("non_zero and compress keep what holds") {
  HostTensor x = HostTensor::Of<float>({2, 3}, {0, 1, -0.0f, 2, 0, std::numeric_limits<float>::quiet_NaN()});
  HostTensor shape = HostTensor::Empty<std::int64_t>({2});
  REQUIRE(Run("rewire.shape.non_zero", {&x, &shape}) == "");
  CHECK(shape.values<std::int64_t>() == I{2, 3});
  HostTensor where = HostTensor::Empty<std::int64_t>({2, 3});
  REQUIRE(Run("rewire.non_zero", {&x, &where}) == "");
  CHECK(where.values<std::int64_t>() == I{0, 1, 1, 1, 0, 2});
  HostTensor small = HostTensor::Empty<std::int64_t>({2, 2});
  CHECK(Run("rewire.non_zero", {&x, &small}) ==
        "ValueError: rewire.non_zero: out has shape [2, 2], expected [2, 3]");

  HostTensor keep = HostTensor::Of<bool>({2}, {false, true});
  HostTensor row = HostTensor::Empty<float>({1, 3});
  HostTensor numbers = HostTensor::Of<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  REQUIRE(Run("rewire.shape.compress", {&numbers, &keep, &shape}, {{"axis", 0}}) == "");
  CHECK(shape.values<std::int64_t>() == I{1, 3});
  REQUIRE(Run("rewire.compress", {&numbers, &keep, &row}, {{"axis", 0}}) == "");
  CHECK(row.values<float>() == F{4, 5, 6});
  HostTensor column = HostTensor::Empty<float>({2, 1});
  REQUIRE(Run("rewire.compress", {&numbers, &keep, &column}, {{"axis", -1}}) == "");
  CHECK(column.values<float>() == F{2, 5});
  HostTensor single = HostTensor::Empty<float>({1});
  REQUIRE(Run("rewire.compress", {&numbers, &keep, &single}) == "");
  CHECK(single.values<float>() == F{2});
  HostTensor longer = HostTensor::Of<bool>({3}, {true, true, true});
  CHECK(Run("rewire.compress", {&numbers, &longer, &row}, {{"axis", 0}}) ==
        "ValueError: rewire.compress: condition has shape [3], expected at most 2 elements for x of shape "
        "[2, 3]");
}

TEST_CASE("sums and the largest along an axis") {
  HostTensor x = HostTensor::Of<std::int32_t>({2, 3}, {1, 2, 3, 4, 5, 6});
  HostTensor out = HostTensor::Empty<std::int32_t>({2, 3});
  HostTensor axis = HostTensor::Of<std::int64_t>({}, {-1});
  using V = std::vector<std::int32_t>;
  REQUIRE(Run("rewire.cumsum", {&x, &axis, &out}) == "");
  CHECK(out.values<std::int32_t>() == V{1, 3, 6, 4, 9, 15});
  REQUIRE(Run("rewire.cumsum", {&x, &axis, &out}, {{"exclusive", 1}, {"reverse", 1}}) == "");
  CHECK(out.values<std::int32_t>() == V{5, 3, 0, 11, 6, 0});
  HostTensor first = HostTensor::Of<std::int32_t>({1}, {0});
  REQUIRE(Run("rewire.cumsum", {&x, &first, &out}) == "");
  CHECK(out.values<std::int32_t>() == V{1, 2, 3, 5, 7, 9});
  REQUIRE(Run("rewire.cumprod", {&x, &axis, &out}) == "");
  CHECK(out.values<std::int32_t>() == V{1, 2, 6, 4, 20, 120});
  REQUIRE(Run("rewire.cumprod", {&x, &axis, &out}, {{"exclusive", 1}, {"reverse", 1}}) == "");
  CHECK(out.values<std::int32_t>() == V{6, 3, 1, 30, 6, 1});
  HostTensor two = HostTensor::Of<std::int64_t>({}, {2});
  CHECK(Run("rewire.cumsum", {&x, &two, &out}) ==
        "ValueError: rewire.cumsum: axis is 2, expected at least -2 and less than 2");
  HostTensor floats = HostTensor::Of<float>({2, 3}, {3, 3, 1, 0, 1, 2});
  HostTensor marks = HostTensor::Empty<float>({2, 3});
  REQUIRE(Run("rewire.hardmax", {&floats, &marks}) == "");
  CHECK(marks.values<float>() == F{1, 0, 0, 0, 0, 1});
}

TEMPLATE_TEST_CASE("hardmax marks the first largest of lines of any length", "", float, double) {
  std::mt19937 random(13);
  ForEachTarget([&] {
    for (const std::int64_t count : {1, 2, 3, 15, 16, 17, 40, 300, 5000}) {
      const std::int64_t lines = count > 100 ? 3 : 40;
      std::vector<TestType> values(static_cast<std::size_t>(count * lines));
      for (TestType& value : values)
        value = random() % 9 == 0 ? std::numeric_limits<TestType>::quiet_NaN()
                                  : static_cast<TestType>(random() % 50);
      HostTensor x = HostTensor::Of<TestType>({lines, count}, values);
      HostTensor marks = HostTensor::Empty<TestType>({lines, count});
      REQUIRE(Run("rewire.hardmax", {&x, &marks}) == "");
      std::vector<TestType> expected(values.size(), 0);
      for (std::int64_t line = 0; line < lines; ++line) {
        const auto begin = static_cast<std::size_t>(line * count);
        std::size_t place = begin;  // NaN is larger than nothing, and nothing is larger than it
        for (std::size_t i = begin; i < begin + static_cast<std::size_t>(count); ++i)
          place = values[i] > values[place] ? i : place;
        expected[place] = 1;
      }
      CAPTURE(count);
      CHECK(marks.values<TestType>() == expected);
    }
  });
}

TEMPLATE_TEST_CASE("hardmax marks the first largest of lines side by side", "", float, double) {
  std::mt19937 random(17);
  ForEachTarget([&] {
    for (const std::int64_t inner : {2, 7, 16, 100, 256, 300}) {
      const std::int64_t outer = 3, count = inner < 100 ? 130 : 9;
      std::vector<TestType> values(static_cast<std::size_t>(outer * count * inner));
      for (TestType& value : values)
        value = random() % 200 == 0 ? std::numeric_limits<TestType>::quiet_NaN()
                                    : static_cast<TestType>(random() % 50);
      HostTensor x = HostTensor::Of<TestType>({outer, count, inner}, values);
      HostTensor marks = HostTensor::Empty<TestType>({outer, count, inner});
      REQUIRE(Run("rewire.hardmax", {&x, &marks}, {{"axis", 1}}) == "");
      std::vector<TestType> expected(values.size(), 0);
      for (std::int64_t line = 0; line < outer * inner; ++line) {
        const std::int64_t begin = line / inner * count * inner + line % inner;
        auto place = static_cast<std::size_t>(begin);
        for (std::int64_t i = 0; i < count; ++i) {
          const auto at = static_cast<std::size_t>(begin + i * inner);
          place = values[at] > values[place] ? at : place;
        }
        expected[place] = 1;
      }
      CAPTURE(inner);
      CHECK(marks.values<TestType>() == expected);
    }
  });
}

}  // namespace
}  // namespace rewire::test
