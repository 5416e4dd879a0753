// SPDX-License-Identifier: Apache-2.0
// Positions of extremes against a loop over each line, for every element type, length and place of the axis.
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <random>

#include "rewire/tests/kernels/kernel_call.h"

namespace rewire::test {
namespace {

// The rule of numpy: NaN is the extreme.
template <typename T>
bool Beats(bool is_max, bool is_last, T later, T best) {
  const auto is_nan = [](T x) { return x != x; };
  if (is_nan(later) || is_nan(best)) return is_nan(later) && (is_last || !is_nan(best));
  return later == best ? is_last : is_max ? later > best : later < best;
}

template <typename T>
std::vector<T> Elements(std::size_t count, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<T> elements(count);
  for (T& element : elements) element = static_cast<T>(random() % 23);  // several are alike
  if constexpr (std::is_floating_point_v<T>) {
    for (std::size_t i = 0; i < count; ++i) {
      if (seed % 3 == 0 && random() % 50 == 0) elements[i] = std::numeric_limits<T>::quiet_NaN();
      if (random() % 40 == 0) elements[i] = -std::numeric_limits<T>::infinity();
      if (random() % 40 == 0) elements[i] = -T{0};
    }
  }
  return elements;
}

}  // namespace

TEMPLATE_TEST_CASE("positions of extremes are those of a loop over each line", "", float, double,
                   std::int64_t, std::int32_t, std::int8_t, std::uint8_t) {
  const std::vector<std::int64_t> lengths = {1, 2, 15, 16, 17, 33, 100, 1000};
  std::uint32_t seed = 0;
  for (const std::int64_t count : lengths) {
    for (const std::int64_t inner : {1, 3, 40, 300}) {
      for (const bool is_max : {true, false}) {
        for (const bool is_last : {true, false}) {
          const std::int64_t outer = 11;  // short lines go eight at a time
          const auto elements = Elements<TestType>(static_cast<std::size_t>(outer * count * inner), ++seed);
          HostTensor x = HostTensor::Of<TestType>({outer, count, inner}, elements);
          HostTensor out = HostTensor::Empty<std::int64_t>({outer, 1, inner});
          REQUIRE(Run(is_max ? "rewire.argmax" : "rewire.argmin", {&x, &out},
                      {{"axis", 1}, {"select_last_index", is_last ? 1 : 0}}) == "");
          std::vector<std::int64_t> expected;
          for (std::int64_t line = 0; line < outer * inner; ++line) {
            const std::int64_t first = line / inner * count * inner + line % inner;
            std::int64_t best = 0;
            for (std::int64_t k = 1; k < count; ++k) {
              if (Beats(is_max, is_last, elements[static_cast<std::size_t>(first + k * inner)],
                        elements[static_cast<std::size_t>(first + best * inner)]))
                best = k;
            }
            expected.push_back(best);
          }
          INFO("count " << count << ", inner " << inner << ", max " << is_max << ", last " << is_last);
          REQUIRE(out.values<std::int64_t>() == expected);
        }
      }
    }
  }
}

// Lines that are longer than what a kernel does between two questions whether to go on.
TEST_CASE("the position of a byte's extreme may lie behind more rows than a byte counts") {
  const std::int64_t rows = 700, columns = 5;
  HostTensor x = HostTensor::Empty<std::uint8_t>({rows, columns}),
             out = HostTensor::Empty<std::int64_t>({columns});
  const std::int64_t places[columns] = {0, 254, 255, 256, 699};
  for (std::int64_t i = 0; i < x.size(); ++i)
    x.elements<std::uint8_t>()[i] = i / columns == places[i % columns] ? 9 : 3;
  REQUIRE(Run("rewire.argmax", {&x, &out}, {{"axis", 0}, {"keepdims", 0}}) == "");
  for (std::int64_t j = 0; j < columns; ++j) CHECK(out.elements<std::int64_t>()[j] == places[j]);
  REQUIRE(Run("rewire.argmin", {&x, &out}, {{"axis", 0}, {"keepdims", 0}, {"select_last_index", 1}}) == "");
  for (std::int64_t j = 0; j < columns; ++j)
    CHECK(out.elements<std::int64_t>()[j] == (places[j] == rows - 1 ? rows - 2 : rows - 1));
}

TEST_CASE("the position of an extreme may lie anywhere in a long line") {
  const std::int64_t count = 70'000;
  for (const std::size_t at : {0U, 16'383U, 16'384U, 40'000U, 69'999U}) {
    std::vector<float> elements(static_cast<std::size_t>(count), 1.0F);
    elements[at] = 2.0F;
    HostTensor x = HostTensor::Of<float>({1, count}, elements), out = HostTensor::Empty<std::int32_t>({1});
    REQUIRE(Run("rewire.argmax", {&x, &out}, {{"axis", 1}, {"keepdims", 0}}) == "");
    CHECK(out.values<std::int32_t>()[0] == static_cast<std::int32_t>(at));
    for (const bool is_last : {true, false}) {
      HostTensor least = HostTensor::Empty<std::int32_t>({1});
      REQUIRE(Run("rewire.argmin", {&x, &least},
                  {{"axis", 1}, {"keepdims", 0}, {"select_last_index", is_last ? 1 : 0}}) == "");
      const std::int32_t first = at == 0 ? 1 : 0, last = at == 69'999 ? 69'998 : 69'999;
      CHECK(least.values<std::int32_t>()[0] == (is_last ? last : first));
    }
  }
}

}  // namespace rewire::test
