// SPDX-License-Identifier: Apache-2.0
// Normalization of groups of channels in both layouts, and of rows, by every instruction set.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "rewire/tests/kernels/kernel_call.h"
#include "rewire/tests/kernels/targets.h"

namespace rewire::test {
namespace {

constexpr double kEpsilon = 1e-3;

// x[n][c][p] with a mean that is large for its spread.
template <typename T>
T Element(std::int64_t n, std::int64_t c, std::int64_t p) {
  return static_cast<T>(100 + c + std::sin(static_cast<double>(7 * n + 3 * c + 5 * p)));
}

struct Form {
  std::int64_t images, channels, plane, groups, parameters;
};

template <typename T>
void Check(const Form& form) {
  CAPTURE(form.images, form.channels, form.plane, form.groups, form.parameters);
  const Shape first = {form.images, form.channels, form.plane},
              last = {form.images, form.plane, form.channels};
  HostTensor x = HostTensor::Empty<T>(first), x_last = HostTensor::Empty<T>(last);
  HostTensor scale = HostTensor::Empty<T>({form.parameters}), bias = HostTensor::Empty<T>({form.parameters});
  for (std::int64_t i = 0; i < form.parameters; ++i) {
    scale.elements<T>()[i] = static_cast<T>(1 + i % 3);
    bias.elements<T>()[i] = static_cast<T>(i % 5);
  }
  const std::int64_t part = form.channels / form.groups;
  std::vector<double> expected;
  for (std::int64_t n = 0; n < form.images; ++n) {
    double mean = 0, variance = 0;  // of the part that channel c belongs to
    for (std::int64_t c = 0; c < form.channels; ++c) {
      if (c % part == 0) mean = variance = 0;
      const auto of_part = [&](const auto& visit) {
        if (c % part != 0) return;
        for (std::int64_t k = c; k < c + part; ++k) {
          for (std::int64_t p = 0; p < form.plane; ++p)
            visit(static_cast<double>(Element<T>(n, k, p)) / static_cast<double>(part * form.plane), k, p);
        }
      };
      of_part([&](double value, auto, auto) { mean += value; });
      of_part([&](double, std::int64_t k, std::int64_t p) {
        variance += std::pow(static_cast<double>(Element<T>(n, k, p)) - mean, 2) /
                    static_cast<double>(part * form.plane);
      });
      const std::int64_t parameter = c / (form.channels / form.parameters);
      for (std::int64_t p = 0; p < form.plane; ++p) {
        x.elements<T>()[(n * form.channels + c) * form.plane + p] = Element<T>(n, c, p);
        x_last.elements<T>()[(n * form.plane + p) * form.channels + c] = Element<T>(n, c, p);
        expected.push_back((static_cast<double>(Element<T>(n, c, p)) - mean) /
                               std::sqrt(variance + kEpsilon) * static_cast<double>(1 + parameter % 3) +
                           static_cast<double>(parameter % 5));
      }
    }
  }
  HostTensor out = HostTensor::Empty<T>(first), out_last = HostTensor::Empty<T>(last);
  const int groups = static_cast<int>(form.groups);
  REQUIRE(Run("rewire.group_norm", {&x, &scale, &bias, &out},
              {{"num_groups", groups}, {"epsilon", kEpsilon}}) == "");
  REQUIRE(Run("rewire.group_norm", {&x_last, &scale, &bias, &out_last},
              {{"num_groups", groups}, {"epsilon", kEpsilon}, {"layout", "NHWC"}}) == "");
  double worst = 0;
  for (std::int64_t i = 0; i < out.size(); ++i) {
    const std::int64_t n = i / form.plane / form.channels, c = i / form.plane % form.channels;
    const std::int64_t at = (n * form.plane + i % form.plane) * form.channels + c;
    const double right = expected[static_cast<std::size_t>(i)];
    worst = std::max({worst, std::fabs(static_cast<double>(out.elements<T>()[i]) - right),
                      std::fabs(static_cast<double>(out_last.elements<T>()[at]) - right)});
  }
  CHECK(worst < 2e-3);
}

TEST_CASE("groups of channels are normalized alike in both layouts") {
  ForEachTarget([] {
    for (const std::int64_t plane : {1, 7, 300}) {
      for (const std::int64_t channels : {1, 6, 32, 36, 66}) {
        for (const std::int64_t groups : {std::int64_t{1}, channels % 2 == 0 ? channels / 2 : 1, channels}) {
          Check<float>({2, channels, plane, groups, channels});
          Check<float>({1, channels, plane, groups, groups});
        }
        Check<double>({1, channels, plane, 1, channels});
      }
    }
  });
}

TEST_CASE("what group_norm refuses with the channels last, and what it makes of nothing and of infinity") {
  HostTensor x = HostTensor::Empty<float>({2, 3, 6}), out = HostTensor::Empty<float>({2, 3, 6});
  HostTensor six = HostTensor::Of<float>({6}, {1, 1, 1, 1, 1, 1}),
             three = HostTensor::Of<float>({3}, {1, 1, 1});
  CHECK(Run("rewire.group_norm", {&x, &six, &six, &out}, {{"num_groups", 4}, {"layout", "NHWC"}}) ==
        "ValueError: rewire.group_norm: x has shape [2, 3, 6]: 6 channels are no multiple of 4 groups");
  CHECK(Run("rewire.group_norm", {&x, &three, &three, &out}, {{"layout", "NHWC"}}) ==
        "ValueError: rewire.group_norm: scale has shape [3], expected [6]");
  HostTensor line = HostTensor::Empty<float>({6}), same = HostTensor::Empty<float>({6});
  CHECK(Run("rewire.group_norm", {&line, &six, &six, &same}, {{"layout", "NHWC"}}) ==
        "ValueError: rewire.group_norm: x has shape [6], expected [N, ..., C]");
  HostTensor none = HostTensor::Empty<float>({0, 3, 6}), nothing = HostTensor::Empty<float>({0, 3, 6});
  CHECK(Run("rewire.group_norm", {&none, &six, &six, &nothing}, {{"layout", "NHWC"}}) == "");
  for (const char* layout : {"NCHW", "NHWC"}) {
    CAPTURE(layout);
    for (std::int64_t i = 0; i < x.size(); ++i) x.elements<float>()[i] = static_cast<float>(i);
    x.elements<float>()[5] = std::numeric_limits<float>::infinity();
    HostTensor ones = HostTensor::Of<float>({1}, {1});
    REQUIRE(Run("rewire.group_norm", {&x, &ones, &ones, &out}, {{"num_groups", 1}, {"layout", layout}}) ==
            "");
    CHECK(std::isnan(out.elements<float>()[0]));
    CHECK(std::isfinite(out.elements<float>()[18]));
  }
}

TEST_CASE("rows of any length are normalized, also where a value is far from the others") {
  ForEachTarget([] {
    for (const std::int64_t count : {1, 3, 8, 33, 70}) {
      CAPTURE(count);
      HostTensor x = HostTensor::Empty<float>({2, count}), out = HostTensor::Empty<float>({2, count});
      HostTensor scale = HostTensor::Empty<float>({count}), bias = HostTensor::Empty<float>({count});
      double mean = 0, squares = 0;
      for (std::int64_t i = 0; i < count; ++i) {
        const double value = i == 0 ? 5000 : 1000 + static_cast<double>(i);
        for (std::int64_t r : {0, 1}) x.elements<float>()[r * count + i] = static_cast<float>(value);
        scale.elements<float>()[i] = static_cast<float>(1 + i);
        bias.elements<float>()[i] = static_cast<float>(i);
        mean += value / static_cast<double>(count);
        squares += value * value / static_cast<double>(count);
      }
      const double deviation = std::sqrt(squares - mean * mean + 1);
      const double root = std::sqrt(squares + 1);
      REQUIRE(Run("rewire.layer_norm", {&x, &scale, &bias, &out}, {{"epsilon", 1.0}}) == "");
      for (std::int64_t i = 0; i < 2 * count; ++i) {
        const auto c = static_cast<double>(i % count);
        const double value = i % count == 0 ? 5000 : 1000 + c;
        CHECK(static_cast<double>(out.elements<float>()[i]) ==
              Approx((value - mean) / deviation * (1 + c) + c).margin(1e-3));
      }
      REQUIRE(Run("rewire.rms_norm", {&x, &scale, &out}, {{"epsilon", 1.0}}) == "");
      for (std::int64_t i = 0; i < 2 * count; ++i) {
        const auto c = static_cast<double>(i % count);
        const double value = i % count == 0 ? 5000 : 1000 + c;
        CHECK(static_cast<double>(out.elements<float>()[i]) == Approx(value / root * (1 + c)).margin(1e-4));
      }
    }
  });
}

TEST_CASE("lrn by roots and other powers, over planes of every length") {
  const std::int64_t channels = 5;
  for (const std::int64_t plane : {1, 7, 300}) {
    for (const double beta : {0.75, 0.5, 0.6}) {
      for (const std::int64_t size : {1, 2, 5}) {
        CAPTURE(plane, beta, size);
        HostTensor x = HostTensor::Random({2, channels, plane}, 1), out = HostTensor::Empty<float>(x.shape());
        REQUIRE(Run("rewire.lrn", {&x, &out},
                    {{"size", size}, {"alpha", 2.0}, {"beta", beta}, {"bias", 0.5}}) == "");
        for (std::int64_t i = 0; i < x.size(); ++i) {
          const std::int64_t c = i / plane % channels;
          const auto at = [&](std::int64_t k) {
            return static_cast<double>(x.elements<float>()[i + k * plane]);
          };
          double squares = 0;
          for (std::int64_t k = -((size - 1) / 2); k <= size / 2; ++k) {
            if (c + k >= 0 && c + k < channels) squares += at(k) * at(k);
          }
          const double expected = at(0) / std::pow(0.5 + 2 / static_cast<double>(size) * squares, beta);
          REQUIRE(static_cast<double>(out.elements<float>()[i]) == Approx(expected).epsilon(1e-6));
        }
      }
    }
  }
}

TEST_CASE("batch_norm of planes of every size") {
  for (const std::int64_t plane : {1, 3, 32, 33}) {
    for (const std::int64_t channels : {1, 5, 700}) {
      CAPTURE(plane, channels);
      HostTensor x = HostTensor::Random({3, channels, plane}, 1), out = HostTensor::Empty<float>(x.shape());
      HostTensor scale = HostTensor::Random({channels}, 2), bias = HostTensor::Random({channels}, 3);
      HostTensor mean = HostTensor::Random({channels}, 4), variance = HostTensor::Random({channels}, 5);
      for (std::int64_t c = 0; c < channels; ++c)
        variance.elements<float>()[c] = 1 + std::fabs(variance.elements<float>()[c]);
      REQUIRE(Run("rewire.batch_norm", {&x, &scale, &bias, &mean, &variance, &out}) == "");
      for (std::int64_t i = 0; i < x.size(); ++i) {
        const std::int64_t c = i / plane % channels;
        const auto at = [](HostTensor& tensor, std::int64_t k) {
          return static_cast<double>(tensor.elements<float>()[k]);
        };
        const double expected =
            (at(x, i) - at(mean, c)) / std::sqrt(at(variance, c) + 1e-5) * at(scale, c) + at(bias, c);
        REQUIRE(at(out, i) == Approx(expected).epsilon(1e-5).margin(1e-6));
      }
    }
  }
}

TEST_CASE("softmax of a short line has the same bits whatever lines are beside it") {
  ForEachTarget([] {
    for (const char* name : {"rewire.softmax", "rewire.log_softmax"}) {
      for (const std::int64_t count : {1, 2, 7, 10, 16}) {
        for (const std::int64_t lines : {2, 3, 4, 5, 63, 65, 130}) {
          CAPTURE(name, count, lines);
          HostTensor x = HostTensor::Random({lines, count}, 1),
                     all = HostTensor::Empty<float>({lines, count});
          REQUIRE(Run(name, {&x, &all}, {{"axis", 1}}) == "");
          const auto values = x.values<float>(), expected = all.values<float>();
          for (std::int64_t i = 0; i < lines; ++i) {
            HostTensor line = HostTensor::Empty<float>({1, count}), alone = line;
            std::copy_n(values.begin() + i * count, count, line.elements<float>().begin());
            REQUIRE(Run(name, {&line, &alone}, {{"axis", 1}}) == "");
            const auto given = alone.values<float>();
            REQUIRE(std::equal(given.begin(), given.end(), expected.begin() + i * count));
          }
        }
      }
    }
  });
}

}  // namespace
}  // namespace rewire::test
