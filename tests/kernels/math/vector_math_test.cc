// SPDX-License-Identifier: Apache-2.0
// The functions over rows of floats, for every instruction set of this CPU, beside the standard library in
// double.
#include <hwy/targets.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "rewire/kernels/cpu/math/vector_math.h"
#include "rewire/tests/kernels/kernel_call.h"
#include "rewire/tests/kernels/not_finite.h"

namespace rewire::test {
namespace {

using kernel::cpu::ChooseVectorMath;
using kernel::cpu::VectorMath;

// Numbers of every magnitude and sign, dense around 0 and 1, and what is no number.
std::vector<float> MathPoints() {
  std::vector<float> points = {0.0f,   -0.0f,   kInf,          -kInf,       kNaN,      88.7f,   88.8f,
                               104.0f, 105.0f,  1e30f,         -1e30f,      -87.5f,    -103.9f, -104.1f,
                               1e-40f, -1e-40f, 3.4028234e38f, 0.99999994f, 1.0000001f};
  for (int i = -2000; i <= 2000; ++i) points.push_back(static_cast<float>(i) * 0.0053f);
  for (int e = -126; e < 127; ++e) {
    for (float mantissa : {1.0f, 1.37f, 1.999f}) {
      points.push_back(std::ldexp(mantissa, e));
      points.push_back(-std::ldexp(mantissa, e));
    }
  }
  return points;
}

void CheckRow(const char* name, VectorMath::Row row, const std::function<double(double)>& exact, double ulps,
              double absolute = 0) {
  const std::vector<float> points = MathPoints();
  std::vector<float> values(points.size());
  row(points.data(), values.data(), static_cast<std::int64_t>(points.size()));
  for (std::size_t i = 0; i < points.size(); ++i) {
    const auto expected = static_cast<float>(exact(static_cast<double>(points[i])));
    if (std::isnan(expected) ? std::isnan(values[i]) : expected == values[i]) continue;
    const double unit = std::fmax(static_cast<double>(std::nextafter(std::fabs(expected), kInf)) -
                                      static_cast<double>(std::fabs(expected)),
                                  std::ldexp(1.0, -126));  // subnormal results may be flushed
    const double error = std::fabs(static_cast<double>(values[i]) - static_cast<double>(expected));
    if (!(error <= ulps * unit + absolute))
      FAIL(name << "(" << points[i] << ") is " << values[i] << ", expected " << expected);
  }
  // Every length, in place.
  for (std::size_t length = 0; length < 70; ++length) {
    std::vector<float> line(points.begin() + 19, points.begin() + 19 + static_cast<std::ptrdiff_t>(length));
    line.push_back(5);
    row(line.data(), line.data(), static_cast<std::int64_t>(length));
    for (std::size_t i = 0; i < length; ++i)
      REQUIRE((line[i] == values[19 + i] || (std::isnan(line[i]) && std::isnan(values[19 + i]))));
    REQUIRE(line[length] == 5);
  }
}

// Sums rows of every length up to 70: far below the largest, far from 0, infinite.
void CheckSumOfExp(const VectorMath& math) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float largest : {0.0f, -3.75f, 1000.0f}) {
    std::vector<float> line;
    double sum = 0;
    for (std::size_t i = 0; i < 70; ++i) {
      const float steps[] = {0.0f, 0.37f, 11.0f, 79.0f, 200.0f, infinity};
      line.push_back(largest - steps[i * 5 % 6] * static_cast<float>(i % 7) / 6);
      if (line.back() != line.back()) line.back() = -infinity;
      sum += std::exp(static_cast<double>(line.back()) - static_cast<double>(largest));
      CHECK(static_cast<double>(math.sum_of_exp(line.data(), largest, static_cast<std::int64_t>(i) + 1)) ==
            Approx(sum).epsilon(3e-7));
    }
    // Terms that are too small to count leave the sum exactly 1, whose logarithm is 0.
    std::vector<float> sure(line.size(), largest - 80);
    for (std::size_t i = 0; i < sure.size(); ++i) {
      sure[i] = largest;
      CHECK(math.sum_of_exp(sure.data(), largest, 70) == 1);
      sure[i] = largest - 80;
    }
    for (const float value : {infinity, -infinity, std::nanf("")})
      CHECK(std::isnan(math.sum_of_exp(line.data(), value, 70)));
  }
}

// Checks the extremes of 0, 1, 2, ... against 7, with a NaN on either side.
void CheckExtremes(const VectorMath& math, std::size_t count) {
  std::vector<float> in(count), most(count + 1, 7), least(count + 1, 7);
  std::iota(in.begin(), in.end(), 0.0F);
  if (count > 3) in[3] = most[2] = least[2] = kNaN;
  math.larger(in.data(), most.data(), static_cast<std::int64_t>(count));
  math.smaller(in.data(), least.data(), static_cast<std::int64_t>(count));
  for (std::size_t i = 0; i < count; ++i) {
    if (count > 3 && (i == 2 || i == 3))
      REQUIRE((std::isnan(most[i]) && std::isnan(least[i])));
    else
      REQUIRE((most[i] == std::max(in[i], 7.0F) && least[i] == std::min(in[i], 7.0F)));
  }
  REQUIRE((most[count] == 7 && least[count] == 7));
}

// Rows of every length, where they are read and elsewhere: the steps of a softmax.
void CheckSoftmaxSteps(const VectorMath& math) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (std::size_t length = 1; length <= 70; ++length) {
    const auto count = static_cast<std::int64_t>(length);
    std::vector<float> line(length);
    for (std::size_t i = 0; i < length; ++i) line[i] = static_cast<float>(i * 31 % 70) * 0.1F - 3;
    const float most = *std::max_element(line.begin(), line.end());
    REQUIRE(math.largest(line.data(), count) == most);
    std::vector<float> apart(length + 1, 5), same = line;
    same.push_back(5);
    double sum = 0;
    for (const float x : line) sum += std::exp(static_cast<double>(x) - static_cast<double>(most));
    REQUIRE(static_cast<double>(math.shifted_exp(line.data(), most, apart.data(), count)) == Approx(sum));
    REQUIRE(static_cast<double>(math.shifted_exp(same.data(), most, same.data(), count)) == Approx(sum));
    for (std::size_t i = 0; i < length; ++i)
      REQUIRE(static_cast<double>(apart[i]) ==
              Approx(std::exp(static_cast<double>(line[i]) - static_cast<double>(most))));
    REQUIRE(same == apart);
    math.scaled(same.data(), 2, same.data(), count);
    for (std::size_t i = 0; i < length; ++i) REQUIRE(same[i] == 2 * apart[i]);
    REQUIRE((apart.back() == 5 && same.back() == 5));
    for (std::size_t i = 0; i < length; ++i) {
      for (const float value : {infinity, -infinity, std::nanf("")}) {
        std::vector<float> with = line;
        with[i] = value;
        const float largest = math.largest(with.data(), count);
        const float expected = value < 0 ? *std::max_element(with.begin(), with.end()) : value;
        REQUIRE((largest == expected || (std::isnan(largest) && std::isnan(value))));
      }
    }
  }
}

// Rows of every length, which lie apart, by one of them.
void CheckDots(const VectorMath& math) {
  for (std::int64_t depth = 0; depth <= 70; ++depth) {
    const std::int64_t step = depth + 3;
    std::vector<float> rows(static_cast<std::size_t>(3 * step)), out(4, 5);
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<float>(i * 7 % 19) - 9;
    math.dots(rows.data(), step, 3, rows.data() + step, depth, out.data());
    for (std::int64_t r = 0; r < 3; ++r) {
      float sum = 0;  // exact: of small integers
      for (std::int64_t i = 0; i < depth; ++i)
        sum += rows[static_cast<std::size_t>(r * step + i)] * rows[static_cast<std::size_t>(step + i)];
      REQUIRE(out[static_cast<std::size_t>(r)] == sum);
    }
    REQUIRE(out[3] == 5);
  }
}

TEST_CASE("functions of rows agree with the standard library on every instruction set") {
  for (std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    INFO(hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    const VectorMath math = ChooseVectorMath();
    CheckRow(
        "exp", math.exp, [](double x) { return std::exp(x); }, 2);
    CheckRow(
        "log", math.log, [](double x) { return std::log(x); }, 5);
    CheckRow(
        "tanh", math.tanh, [](double x) { return std::tanh(x); }, 6);
    CheckRow(
        "sin", math.sin, [](double x) { return std::sin(x); }, 4, 1e-7);
    CheckRow(
        "cos", math.cos, [](double x) { return std::cos(x); }, 4, 1e-7);
    CheckRow(
        "tan", math.tan, [](double x) { return std::tan(x); }, 8);
    CheckRow(
        "asin", math.asin, [](double x) { return std::asin(x); }, 4);
    CheckRow(
        "acos", math.acos, [](double x) { return std::acos(x); }, 4);
    CheckRow(
        "atan", math.atan, [](double x) { return std::atan(x); }, 4);
    CheckRow(
        "sinh", math.sinh, [](double x) { return std::sinh(x); }, 6);
    CheckRow(
        "cosh", math.cosh, [](double x) { return std::cosh(x); }, 6);
    CheckRow(
        "asinh", math.asinh, [](double x) { return std::asinh(x); }, 5);
    CheckRow(
        "acosh", math.acosh, [](double x) { return std::acosh(x); }, 5);
    CheckRow(
        "atanh", math.atanh, [](double x) { return std::atanh(x); }, 5);
    CheckRow(
        "round", math.round, [](double x) { return std::nearbyint(x); }, 0);
    CheckRow(
        "floor", math.floor, [](double x) { return std::floor(x); }, 0);
    CheckRow(
        "ceil", math.ceil, [](double x) { return std::ceil(x); }, 0);
    CheckRow(
        "sigmoid", math.sigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }, 4);
    CheckRow(
        "swish", math.swish, [](double x) { return x / (1 + std::exp(-x)); }, 4);
    CheckRow(
        "erf", math.erf, [](double x) { return std::erf(x); }, 4);
    CheckRow(
        "gelu", math.gelu,
        [](double x) { return std::isinf(x) && x < 0 ? std::nan("") : x / 2 * std::erfc(-x / std::sqrt(2)); },
        4, 1e-6);
    std::vector<float> line(45), powers(45);
    double sum = 0;
    for (std::size_t i = 0; i < line.size(); ++i) {
      line[i] = static_cast<float>(i) * 0.1f;
      sum += std::exp(static_cast<double>(line[i]) - 4.4);
    }
    CHECK(static_cast<double>(math.shifted_exp(line.data(), 4.4f, powers.data(), 45)) == Approx(sum));
    CHECK(static_cast<double>(powers[44]) == Approx(1));
    CheckSumOfExp(math);
    CheckSoftmaxSteps(math);
    CheckDots(math);
    for (std::size_t count = 0; count <= line.size(); ++count) {
      std::vector<float> sums(count + 1, 2.5F), of_bf16(count + 1, 2.5F);
      const std::vector<std::uint16_t> ones(count, 0x3F80);
      math.add(line.data(), sums.data(), static_cast<std::int64_t>(count));
      math.add_bf16(ones.data(), of_bf16.data(), static_cast<std::int64_t>(count));
      for (std::size_t i = 0; i < count; ++i) REQUIRE((sums[i] == 2.5F + line[i] && of_bf16[i] == 3.5F));
      REQUIRE((sums[count] == 2.5F && of_bf16[count] == 2.5F));
      CheckExtremes(math, count);
    }
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

TEST_CASE("rows of functions may be strided") {
  HostTensor x = HostTensor::Random({3, 4}, 1);
  HostTensor whole = HostTensor::Empty<float>({3, 4}), turned = HostTensor::Empty<float>({4, 3});
  REQUIRE(Run("rewire.exp", {&x, &whole}) == "");
  x.SetView({4, 3}, {1, 4});
  REQUIRE(Run("rewire.exp", {&x, &turned}) == "");
  for (std::size_t i = 0; i < 12; ++i)
    CHECK(turned.values<float>()[i] == whole.values<float>()[i % 3 * 4 + i / 3]);
}

}  // namespace
}  // namespace rewire::test
