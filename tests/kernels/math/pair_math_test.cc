// SPDX-License-Identifier: Apache-2.0
// Functions of two rows of floats, for every instruction set of this CPU, beside the standard library.
#include "rewire/kernels/cpu/math/pair_math.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <vector>

#include "rewire/tests/kernels/kernel_call.h"
#include "rewire/tests/kernels/targets.h"

namespace rewire::test {
namespace {

using kernel::cpu::ChoosePairMath;
using kernel::cpu::PairMath;

// NaN and infinities, zeros, the ends of what a float holds, whole numbers and their neighbors, and others of
// every magnitude.
std::vector<float> PairPoints() {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  std::vector<float> points = {0.0F,    kInf,    std::nanf(""), 1e-45F,     1.17549435e-38F, 3.4028234e38F,
                               0.5F,    1.5F,    0.99999994F,   1.0000001F, 2.9999998F,      16777216.0F,
                               8388607, 8388609, 0.1F,          0.3F,       1e-3F,           123.456F};
  for (int i = 1; i <= 8; ++i) points.push_back(static_cast<float>(i));
  for (int e = -120; e <= 120; e += 24) points.push_back(std::ldexp(1.37F, e));
  const std::size_t count = points.size();
  for (std::size_t i = 0; i < count; ++i) points.push_back(-points[i]);
  return points;
}

bool IsSame(float a, float b) {
  return std::isnan(a) ? std::isnan(b) : a == b && std::signbit(a) == std::signbit(b);
}

void CheckRows(const char* name, PairMath::Row row, float (*exact)(float, float)) {
  const std::vector<float> points = PairPoints();
  std::vector<float> a, b;
  for (const float x : points) {
    for (const float y : points) {
      a.push_back(x);
      b.push_back(y);
    }
  }
  std::vector<float> out(a.size());
  row(a.data(), b.data(), out.data(), static_cast<std::int64_t>(a.size()));
  for (std::size_t i = 0; i < a.size(); ++i) {
    const float expected = exact(a[i], b[i]);
    if (!IsSame(out[i], expected))
      FAIL(name << "(" << a[i] << ", " << b[i] << ") is " << out[i] << ", expected " << expected);
  }
  // Every length, over either operand.
  for (std::size_t length = 0; length < 70; ++length) {
    for (const bool over_first : {true, false}) {
      std::vector<float> first(a.begin(), a.begin() + 71), second(b.begin(), b.begin() + 71);
      std::vector<float>& to = over_first ? first : second;
      const float behind = to[length];
      row(first.data(), second.data(), to.data(), static_cast<std::int64_t>(length));
      for (std::size_t i = 0; i < length; ++i) REQUIRE(IsSame(to[i], out[i]));
      REQUIRE(IsSame(to[length], behind));
    }
  }
}

float Fmod(float a, float b) { return std::fmod(a, b); }
// Rounded once from f64.
float Pow(float a, float b) {
  return static_cast<float>(std::pow(static_cast<double>(a), static_cast<double>(b)));
}

}  // namespace

TEST_CASE("functions of two rows agree with the standard library on every instruction set") {
  ForEachTarget([] {
    const PairMath math = ChoosePairMath();
    CheckRows("fmod", math.fmod, &Fmod);
    CheckRows("pow", math.pow, &Pow);
  });
}

TEST_CASE("functions of two rows take rows that are repeated or strided") {
  HostTensor x = HostTensor::Random({37, 21}, 1), y = HostTensor::Random({37, 21}, 2);
  HostTensor one = HostTensor::Random({1, 21}, 3), column = HostTensor::Random({37, 1}, 4);
  for (const char* name : {"rewire.fmod", "rewire.pow"}) {
    const auto exact = std::string(name) == "rewire.fmod" ? &Fmod : &Pow;
    for (HostTensor* second : {&y, &one, &column}) {
      HostTensor out = HostTensor::Empty<float>({37, 21});
      REQUIRE(Run(name, {&x, second, &out}) == "");
      const std::size_t rows = second == &one      ? 0
                               : second == &column ? 1
                                                   : 21,
                        columns = second == &column ? 0 : 1;
      for (std::size_t i = 0; i < 37 * 21; ++i) {
        const float b = second->values<float>()[i / 21 * rows + i % 21 * columns];
        REQUIRE(IsSame(out.values<float>()[i], exact(x.values<float>()[i], b)));
      }
    }
  }
  // The transposed view of x.
  HostTensor out = HostTensor::Empty<float>({21, 37}), turned = HostTensor::Random({21, 37}, 5);
  x.SetView({21, 37}, {1, 21});
  REQUIRE(Run("rewire.fmod", {&x, &turned, &out}) == "");
  for (std::size_t i = 0; i < 37 * 21; ++i) {
    const float a = x.values<float>()[i % 37 * 21 + i / 37];
    REQUIRE(IsSame(out.values<float>()[i], Fmod(a, turned.values<float>()[i])));
  }
}

TEMPLATE_TEST_CASE("floats to the power of integers are those of f64 on every instruction set", "",
                   std::int32_t, std::int64_t, std::uint64_t) {
  const std::vector<float> points = PairPoints();
  std::vector<TestType> exponents = {0, 1, 2, 3, 7, 64, 1000, 1025, 1 << 24, (1 << 24) + 1, 1 << 30};
  if constexpr (std::is_signed_v<TestType>)
    exponents.insert(exponents.end(), {-1, -2, -5, -1000, -1025, -(1 << 30)});
  const auto rows = static_cast<std::int64_t>(exponents.size());
  const auto columns = static_cast<std::int64_t>(points.size());
  std::vector<float> bases;
  std::vector<TestType> repeated;
  for (const TestType exponent : exponents) {
    bases.insert(bases.end(), points.begin(), points.end());
    repeated.insert(repeated.end(), points.size(), exponent);
  }
  HostTensor base = HostTensor::Of<float>({rows, columns}, bases);
  HostTensor column = HostTensor::Of<TestType>({rows, 1}, exponents);
  HostTensor all = HostTensor::Of<TestType>({rows, columns}, repeated);
  HostTensor transposed = HostTensor::Empty<float>({columns, rows});
  transposed.SetView({rows, columns}, {1, rows});
  ForEachTarget([&] {
    HostTensor dense = HostTensor::Empty<float>({rows, columns});
    for (HostTensor* exponent : {&column, &all}) {
      for (HostTensor* out : {&dense, &transposed}) {
        REQUIRE(Run("rewire.pow", {&base, exponent, out}) == "");
        for (std::int64_t i = 0; i < rows * columns; ++i) {
          const auto at = static_cast<std::size_t>(i);
          const std::int64_t place = out == &dense ? i : i % columns * rows + i / columns;
          const auto expected =
              static_cast<float>(std::pow(static_cast<double>(bases[at]), static_cast<double>(repeated[at])));
          if (!IsSame(out->template elements<float>()[place], expected))
            FAIL(bases[at] << " to the power of " << repeated[at] << " is "
                           << out->template elements<float>()[place] << ", expected " << expected);
        }
      }
    }
  });
}

}  // namespace rewire::test
