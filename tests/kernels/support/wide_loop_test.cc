// SPDX-License-Identifier: Apache-2.0
// Kernels whose loops are compiled twice, against loops of the test, on every instruction set.
#include "rewire/kernels/cpu/support/wide_loop.h"

#include <algorithm>
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "rewire/kernels/cpu/support/half.h"
#include "rewire/tests/kernels/kernel_call.h"
#include "rewire/tests/kernels/not_finite.h"
#include "rewire/tests/kernels/targets.h"

namespace rewire::test {
namespace {

using kernel::cpu::BFloat16;
using kernel::cpu::Float16;

// Small numbers, several alike, and now and then one at an edge.
template <typename T>
std::vector<T> Elements(std::int64_t count, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<T> elements;
  for (std::int64_t i = 0; i < count; ++i) {
    auto number = static_cast<float>(random() % 23) - 8;
    if constexpr (std::is_same_v<T, float>) {
      constexpr float kEdges[] = {kNaN, -kInf, -0.0F, kInf};
      if (random() % 17 == 0) number = kEdges[random() % 4];
    }
    elements.push_back(static_cast<T>(number));
  }
  return elements;
}

template <typename T>
std::vector<Float16> Halves(const std::vector<T>& floats) {
  std::vector<Float16> halves;
  for (const T x : floats) halves.push_back(Float16(x));
  return halves;
}

}  // namespace

TEST_CASE("a wide loop runs once, compiled for the chosen instruction set") {
  ForEachTarget([] {
    [[maybe_unused]] const std::int64_t best = hwy::SupportedTargets() & -hwy::SupportedTargets();
#if HWY_ARCH_X86_64 && !defined(__AVX2__)
    CHECK(kernel::cpu::HasWideLoops() == (best <= HWY_AVX2));
#endif
    int runs = 0;
    kernel::cpu::WideLoop([&] { ++runs; });
    CHECK(runs == 1);
  });
}

TEST_CASE("16-bit floats are compared as floats") {
  struct Comparison {
    const char* name;
    std::function<bool(float, float)> holds;
  };
  const Comparison comparisons[] = {
      {"rewire.equal", [](float a, float b) { return a == b; }},
      {"rewire.not_equal", [](float a, float b) { return a != b; }},
      {"rewire.less", [](float a, float b) { return a < b; }},
      {"rewire.less_equal", [](float a, float b) { return a <= b; }},
      {"rewire.greater", [](float a, float b) { return a > b; }},
      {"rewire.greater_equal", [](float a, float b) { return a >= b; }},
  };
  const std::int64_t rows = 3, columns = 601;
  const std::vector<float> a = Elements<float>(rows * columns, 1), b = Elements<float>(columns, 2),
                           c = Elements<float>(rows, 3);
  HostTensor x = HostTensor::Of<Float16>({rows, columns}, Halves(a));
  HostTensor row = HostTensor::Of<Float16>({columns}, Halves(b)),
             column = HostTensor::Of<Float16>({rows, 1}, Halves(c));
  ForEachTarget([&] {
    for (const auto& [name, holds] : comparisons) {
      INFO(name);
      for (const bool by_row : {true, false}) {
        HostTensor out = HostTensor::Empty<bool>({rows, columns});
        REQUIRE(Run(name, {&x, by_row ? &row : &column, &out}) == "");
        std::vector<std::uint8_t> expected;
        for (std::size_t i = 0; i < a.size(); ++i)
          expected.push_back(holds(a[i], by_row ? b[i % columns] : c[i / columns]) ? 1 : 0);
        REQUIRE(out.values<std::uint8_t>() == expected);
      }
    }
  });
}

// Lengths around the groups that go through registers, each operand as a row or one element.
TEST_CASE("arithmetic of 16-bit floats is that of floats, rounded once, at each length") {
  struct Function {
    const char* name;
    std::function<float(float, float)> of;
  };
  const Function functions[] = {
      {"rewire.add", [](float a, float b) { return a + b; }},
      {"rewire.mul", [](float a, float b) { return a * b; }},
      {"rewire.div", [](float a, float b) { return a / b; }},
      {"rewire.prelu", [](float a, float b) { return a < 0 ? a * b : a; }},
      {"rewire.at_most", [](float a, float b) { return a > b ? b : a; }},
  };
  ForEachTarget([&] {
    for (const auto& [name, of] : functions) {
      INFO(name);
      for (std::int64_t count = 1; count < 70; count += count < 36 ? 1 : 7) {
        const std::vector<float> a = Elements<float>(count, 5), b = Elements<float>(count, 6);
        for (const int repeated : {0, 1, 2}) {
          HostTensor x = HostTensor::Of<Float16>({repeated == 1 ? 1 : count},
                                                 Halves(repeated == 1 ? std::vector{a[0]} : a)),
                     y = HostTensor::Of<Float16>({repeated == 2 ? 1 : count},
                                                 Halves(repeated == 2 ? std::vector{b[0]} : b));
          HostTensor out = HostTensor::Empty<Float16>({count});
          REQUIRE(Run(name, {&x, &y, &out}) == "");
          if (repeated != 1) REQUIRE(Run(name, {&x, &y, &x}) == "");
          for (std::size_t i = 0; i < a.size(); ++i) {
            const Float16 expected(of(repeated == 1 ? a[0] : a[i], repeated == 2 ? b[0] : b[i]));
            if (std::isnan(static_cast<float>(expected))) {
              REQUIRE(std::isnan(static_cast<float>(out.values<Float16>()[i])));
            } else {
              REQUIRE(out.values<Float16>()[i].bits == expected.bits);
              if (repeated != 1) REQUIRE(x.values<Float16>()[i].bits == expected.bits);
            }
          }
        }
      }
    }
  });
}

TEST_CASE("floats become integers of 64 bits, beside numbers that 32 bits do not hold") {
  for (const std::int64_t count : {1, 7, 255, 256, 257, 900}) {
    std::vector<float> x = Elements<float>(count, 8);
    for (std::size_t i = 300; i < x.size(); i += 301) x[i] = i % 2 == 0 ? 3e9F : -1e20F;
    HostTensor in = HostTensor::Of<float>({count}, x), out = HostTensor::Empty<std::int64_t>({count});
    ForEachTarget([&] {
      REQUIRE(Run("rewire.cast", {&in, &out}) == "");
      for (std::size_t i = 0; i < x.size(); ++i) {
        constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
        const std::int64_t expected = std::isnan(x[i])   ? 0
                                      : x[i] >= 0x1p63F  ? kMost
                                      : x[i] <= -0x1p63F ? -kMost - 1
                                                         : static_cast<std::int64_t>(x[i]);
        REQUIRE(out.values<std::int64_t>()[i] == expected);
      }
    });
  }
}

TEMPLATE_TEST_CASE("a power by 2 is a square", "", float, double, std::int32_t, std::int64_t, std::uint8_t) {
  const std::vector<TestType> x = {0, 1, 3, 200, static_cast<TestType>(-7), static_cast<TestType>(0.75)};
  HostTensor base = HostTensor::Of<TestType>({6}, x), out = HostTensor::Empty<TestType>({6});
  for (const Shape& shape : {Shape{}, Shape{1}}) {
    HostTensor two = HostTensor::Of<TestType>(shape, std::vector<TestType>{2});
    REQUIRE(Run("rewire.pow", {&base, &two, &out}) == "");
    for (std::size_t i = 0; i < x.size(); ++i)
      CHECK(out.values<TestType>()[i] == static_cast<TestType>(x[i] * x[i]));
  }
}

TEMPLATE_TEST_CASE("each 16-bit float is of its class", "", Float16, BFloat16) {
  std::vector<TestType> all;
  for (int bits = 0; bits < 65536; ++bits)
    all.push_back(std::bit_cast<TestType>(static_cast<std::uint16_t>(bits)));
  HostTensor x = HostTensor::Of<TestType>({65536}, all);
  const auto check = [&](const char* name, const AttributeList& attributes, const auto& is_of_class) {
    HostTensor out = HostTensor::Empty<bool>({65536});
    REQUIRE(Run(name, {&x, &out}, attributes) == "");
    std::vector<std::uint8_t> expected;
    for (const TestType each : all) expected.push_back(is_of_class(static_cast<float>(each)) ? 1 : 0);
    REQUIRE(out.values<std::uint8_t>() == expected);
  };
  ForEachTarget([&] {
    check("rewire.isnan", {}, [](float x) { return std::isnan(x); });
    for (const bool above : {true, false}) {
      for (const bool below : {true, false}) {
        check("rewire.isinf", {{"detect_positive", above ? 1 : 0}, {"detect_negative", below ? 1 : 0}},
              [=](float x) { return std::isinf(x) && (x > 0 ? above : below); });
      }
    }
  });
}

TEMPLATE_TEST_CASE("floats at the edges are of their classes", "", float, double) {
  using Limits = std::numeric_limits<TestType>;
  const std::vector<TestType> edges = {0,
                                       -TestType{0},
                                       Limits::infinity(),
                                       -Limits::infinity(),
                                       Limits::quiet_NaN(),
                                       -Limits::quiet_NaN(),
                                       Limits::max(),
                                       Limits::lowest(),
                                       Limits::denorm_min(),
                                       1};
  const auto count = static_cast<std::int64_t>(edges.size());
  HostTensor x = HostTensor::Of<TestType>({count}, edges), nan = HostTensor::Empty<bool>({count}),
             infinite = HostTensor::Empty<bool>({count});
  ForEachTarget([&] {
    REQUIRE(Run("rewire.isnan", {&x, &nan}) == "");
    REQUIRE(Run("rewire.isinf", {&x, &infinite}) == "");
    for (std::size_t i = 0; i < edges.size(); ++i) {
      CHECK((nan.values<std::uint8_t>()[i] != 0) == std::isnan(edges[i]));
      CHECK((infinite.values<std::uint8_t>()[i] != 0) == std::isinf(edges[i]));
    }
  });
}

TEST_CASE("each operand of where may be repeated along rows") {
  const std::int64_t rows = 4, columns = 37;
  const auto at = [&](const auto& values, bool repeats, std::int64_t i) {
    return values[static_cast<std::size_t>(repeats ? i / columns : i)];
  };
  ForEachTarget([&] {
    for (int repeated = 0; repeated < 7; ++repeated) {
      const bool of[] = {(repeated & 1) != 0, (repeated & 2) != 0, (repeated & 4) != 0};
      const auto shape = [&](int k) { return Shape{rows, of[k] ? 1 : columns}; };
      const auto size = [&](int k) { return of[k] ? rows : rows * columns; };
      std::vector<bool> condition;
      for (const float x : Elements<float>(size(0), 4)) condition.push_back(x > 0);
      const auto a = Elements<std::int32_t>(size(1), 5), b = Elements<std::int32_t>(size(2), 6);
      HostTensor c = HostTensor::Of<bool>(shape(0), condition), x = HostTensor::Of<std::int32_t>(shape(1), a),
                 y = HostTensor::Of<std::int32_t>(shape(2), b);
      HostTensor out = HostTensor::Empty<std::int32_t>({rows, columns});
      REQUIRE(Run("rewire.where", {&c, &x, &y, &out}) == "");
      std::vector<std::int32_t> expected;
      for (std::int64_t i = 0; i < rows * columns; ++i)
        expected.push_back(at(condition, of[0], i) ? at(a, of[1], i) : at(b, of[2], i));
      REQUIRE(out.values<std::int32_t>() == expected);
    }
  });
}

TEST_CASE("the first largest element of a line is one of its elements, wherever the axis is") {
  ForEachTarget([] {
    std::uint32_t seed = 10;
    for (const std::int64_t count : {1, 5, 16, 47, 20'000}) {
      for (const std::int64_t inner : {1, 3, 300}) {
        if (count * inner > 100'000) continue;
        const std::vector<float> elements = Elements<float>(2 * count * inner, ++seed);
        HostTensor x = HostTensor::Of<float>({2, count, inner}, elements),
                   out = HostTensor::Empty<float>({2, count, inner});
        REQUIRE(Run("rewire.hardmax", {&x, &out}, {{"axis", 1}}) == "");
        std::vector<float> expected(elements.size(), 0.0F);
        for (std::int64_t line = 0; line < 2 * inner; ++line) {
          const std::int64_t first = line / inner * count * inner + line % inner;
          std::int64_t best = first;
          for (std::int64_t k = 1; k < count; ++k) {
            const std::int64_t at = first + k * inner;
            if (elements[static_cast<std::size_t>(at)] > elements[static_cast<std::size_t>(best)]) best = at;
          }
          expected[static_cast<std::size_t>(best)] = 1;
        }
        REQUIRE(out.values<float>() == expected);
      }
    }
  });
}

TEMPLATE_TEST_CASE("running sums and products are those of a loop", "", float, double, std::int64_t,
                   std::int32_t) {
  ForEachTarget([] {
    for (const std::int64_t inner : {1, 3, 4, 7, 8, 21, 70}) {
      for (int form = 0; form < 8; ++form) {
        const bool is_product = (form & 1) != 0, is_exclusive = (form & 2) != 0,
                   is_reversed = (form & 4) != 0;
        const std::int64_t count = 5;
        std::vector<TestType> elements;
        for (const float x : Elements<std::int32_t>(2 * count * inner, 20))
          elements.push_back(static_cast<TestType>(x));
        HostTensor x = HostTensor::Of<TestType>({2, count, inner}, elements);
        HostTensor axis = HostTensor::Of<std::int64_t>({}, {1}),
                   out = HostTensor::Empty<TestType>({2, count, inner});
        REQUIRE(Run(is_product ? "rewire.cumprod" : "rewire.cumsum", {&x, &axis, &out},
                    {{"exclusive", is_exclusive ? 1 : 0}, {"reverse", is_reversed ? 1 : 0}}) == "");
        std::vector<TestType> expected(elements.size());
        for (std::int64_t line = 0; line < 2 * inner; ++line) {
          const std::int64_t first = line / inner * count * inner + line % inner;
          TestType total = is_product ? 1 : 0;
          for (std::int64_t k = 0; k < count; ++k) {
            const auto at = static_cast<std::size_t>(first + (is_reversed ? count - 1 - k : k) * inner);
            const TestType before = total;
            total = static_cast<TestType>(
                is_product ? static_cast<double>(total) * static_cast<double>(elements[at])
                           : static_cast<double>(total) + static_cast<double>(elements[at]));
            expected[at] = is_exclusive ? before : total;
          }
        }
        INFO("form " << form << ", inner " << inner);
        REQUIRE(out.values<TestType>() == expected);
      }
    }
  });
}

TEST_CASE("elements that are not 0 are found in lines of any length") {
  ForEachTarget([] {
    for (const std::int64_t columns : {1, 6, 256, 700}) {
      const std::int64_t rows = 5;
      std::vector<float> elements = Elements<float>(rows * columns, 30);
      for (std::size_t i = 0; i < elements.size(); i += 3) elements[i] = 0;
      std::vector<std::int64_t> places[2];
      for (std::int64_t i = 0; i < rows * columns; ++i) {
        if (elements[static_cast<std::size_t>(i)] == 0) continue;
        places[0].push_back(i / columns);
        places[1].push_back(i % columns);
      }
      const auto count = static_cast<std::int64_t>(places[0].size());
      std::vector<std::int64_t> expected = places[0];
      expected.insert(expected.end(), places[1].begin(), places[1].end());
      HostTensor x = HostTensor::Of<float>({rows, columns}, elements),
                 shape = HostTensor::Empty<std::int64_t>({2});
      REQUIRE(Run("rewire.shape.non_zero", {&x, &shape}) == "");
      CHECK(shape.values<std::int64_t>() == std::vector<std::int64_t>{2, count});
      HostTensor out = HostTensor::Empty<std::int64_t>({2, count});
      REQUIRE(Run("rewire.non_zero", {&x, &out}) == "");
      CHECK(out.values<std::int64_t>() == expected);
    }
  });
}

TEMPLATE_TEST_CASE("single elements are kept or picked along the last axis", "", std::uint8_t, std::int64_t,
                   float) {
  const std::int64_t rows = GENERATE(3, 6), columns = GENERATE(41, 700);
  std::vector<TestType> elements;
  for (const std::int32_t x : Elements<std::int32_t>(rows * columns, 40))
    elements.push_back(static_cast<TestType>(x));
  HostTensor x = HostTensor::Of<TestType>({rows, columns}, elements);
  std::vector<bool> takes;
  std::vector<std::int64_t> picks;
  for (std::int64_t i = 0; i < columns - 2; ++i) {
    takes.push_back(i % 3 != 1);
    if (takes.back()) picks.push_back(i % 2 == 0 ? i : i - columns);
  }
  const auto kept = static_cast<std::int64_t>(picks.size());
  std::vector<TestType> expected;
  for (std::int64_t row = 0; row < rows; ++row) {
    for (const std::int64_t pick : picks)
      expected.push_back(elements[static_cast<std::size_t>(row * columns + (pick + columns) % columns)]);
  }
  HostTensor condition = HostTensor::Of<bool>({columns - 2}, takes),
             index = HostTensor::Of<std::int64_t>({kept}, picks);
  HostTensor compressed = HostTensor::Empty<TestType>({rows, kept}),
             gathered = HostTensor::Empty<TestType>({rows, kept});
  REQUIRE(Run("rewire.compress", {&x, &condition, &compressed}, {{"axis", 1}}) == "");
  CHECK(compressed.values<TestType>() == expected);
  REQUIRE(Run("rewire.gather", {&x, &index, &gathered}, {{"axis", 1}}) == "");
  CHECK(gathered.values<TestType>() == expected);
}

TEST_CASE("the first few by value are in order, and the earlier of equal ones is first") {
  for (const std::int64_t count : {4, 40, 3000}) {
    for (const std::int64_t k : {1, 4, 10, 16}) {
      if (k > count) continue;
      for (const std::int64_t inner : {1, 5}) {
        for (const bool largest : {true, false}) {
          const std::vector<float> elements = Elements<float>(count * inner, 50);
          HostTensor x = HostTensor::Of<float>({count, inner}, elements);
          HostTensor values = HostTensor::Empty<float>({k, inner}),
                     indices = HostTensor::Empty<std::int64_t>({k, inner});
          REQUIRE(Run("rewire.top_k", {&x, &values, &indices}, {{"axis", 0}, {"largest", largest ? 1 : 0}}) ==
                  "");
          std::vector<std::int64_t> expected(static_cast<std::size_t>(k * inner));
          for (std::int64_t column = 0; column < inner; ++column) {
            std::vector<std::int64_t> order(static_cast<std::size_t>(count));
            std::iota(order.begin(), order.end(), std::int64_t{0});
            // NaN is above all numbers.
            const auto is_below = [](float a, float b) { return std::isnan(b) ? !std::isnan(a) : a < b; };
            std::stable_sort(order.begin(), order.end(), [&](std::int64_t i, std::int64_t j) {
              const float a = elements[static_cast<std::size_t>(i * inner + column)],
                          b = elements[static_cast<std::size_t>(j * inner + column)];
              return largest ? is_below(b, a) : is_below(a, b);
            });
            for (std::int64_t i = 0; i < k; ++i)
              expected[static_cast<std::size_t>(i * inner + column)] = order[static_cast<std::size_t>(i)];
          }
          INFO("count " << count << ", k " << k << ", inner " << inner << ", largest " << largest);
          REQUIRE(indices.values<std::int64_t>() == expected);
        }
      }
    }
  }
}

}  // namespace rewire::test
