// SPDX-License-Identifier: Apache-2.0
// Resizing by every instruction set, of lines of every length that takes another path.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "rewire/tests/kernels/kernel_call.h"
#include "rewire/tests/kernels/targets.h"

namespace rewire::test {
namespace {

// One axis of a tensor [outer, axis, inner].
struct Lines {
  std::int64_t outer, input, output, inner;
};

// The half-pixel filter of `reach` taps on each side, without antialiasing.
double Weight(const std::string& mode, double distance) {
  constexpr double kA = -0.75;
  const double d = std::fabs(distance);
  if (mode == "linear") return std::max(0.0, 1 - d);
  return d <= 1  ? (kA + 2) * d * d * d - (kA + 3) * d * d + 1
         : d < 2 ? kA * d * d * d - 5 * kA * d * d + 8 * kA * d - 4 * kA
                 : 0;
}

template <typename T>
std::vector<double> Expected(const HostTensor& x, const Lines& lines, const std::string& mode) {
  std::vector<double> result;
  const auto values = x.values<T>();
  for (std::int64_t r = 0; r < lines.outer * lines.output; ++r) {
    const std::int64_t o = r % lines.output, outer = r / lines.output;
    const double at = (static_cast<double>(o) + 0.5) * static_cast<double>(lines.input) /
                          static_cast<double>(lines.output) -
                      0.5;
    const auto down = static_cast<std::int64_t>(std::floor(at));
    for (std::int64_t k = 0; k < lines.inner; ++k) {
      const auto value = [&](std::int64_t i) {
        const std::int64_t held = std::clamp<std::int64_t>(i, 0, lines.input - 1);
        return static_cast<double>(
            values[static_cast<std::size_t>((outer * lines.input + held) * lines.inner + k)]);
      };
      double sum = 0;
      if (mode == "nearest") {
        sum = value(at - std::floor(at) > 0.5 ? down + 1 : down);
      } else {
        for (std::int64_t i = down - 1; i <= down + 2; ++i)
          sum += Weight(mode, at - static_cast<double>(i)) * value(i);
      }
      result.push_back(sum);
    }
  }
  return result;
}

template <typename T>
void Check(const Lines& lines, const std::string& mode) {
  CAPTURE(lines.outer, lines.input, lines.output, lines.inner, mode);
  HostTensor random = HostTensor::Random({lines.outer, lines.input, lines.inner}, 7);
  HostTensor x = HostTensor::Empty<T>({lines.outer, lines.input, lines.inner});
  std::transform(random.elements<float>().begin(), random.elements<float>().end(), x.elements<T>().begin(),
                 [](float value) { return static_cast<T>(value); });
  HostTensor out = HostTensor::Empty<T>({lines.outer, lines.output, lines.inner});
  REQUIRE(Run("rewire.resize", {&x, &out}, {{"mode", mode.c_str()}}) == "");
  const std::vector<double> expected = Expected<T>(x, lines, mode);
  const auto values = out.values<T>();
  double worst = 0;
  for (std::size_t i = 0; i < values.size(); ++i)
    worst = std::max(worst, std::fabs(static_cast<double>(values[i]) - expected[i]));
  CHECK(worst < 1e-5);
}

TEST_CASE("lines of every length are resized the same by every instruction set") {
  ForEachTarget([] {
    for (const char* mode : {"nearest", "linear", "cubic"}) {
      // Positions of few elements are permuted: within one vector, within two, and from further apart.
      for (const std::int64_t inner : {1, 2, 3, 4}) {
        for (const std::int64_t input : {1, 2, 7, 16, 31, 33, 100}) {
          for (const std::int64_t output : {1, 3, 15, 16, 17, 40, 133})
            Check<float>({3, input, output, inner}, mode);
        }
      }
      // Positions of more elements: less than a vector, whole vectors, and a rest.
      for (const std::int64_t inner : {5, 15, 16, 21, 64, 67}) {
        for (const std::int64_t output : {1, 4, 9, 18}) Check<float>({2, 9, output, inner}, mode);
      }
      Check<float>({130, 8, 20, 1}, mode);   // more lines than share what was found out
      Check<float>({1, 3, 5, 20000}, mode);  // positions longer than what runs without a question
      for (const std::int64_t inner : {1, 3, 8, 9}) Check<double>({2, 6, 11, inner}, mode);
    }
  });
}

// Numbers that no float holds.
TEST_CASE("elements of 64 bits are copied whole by the nearest") {
  constexpr std::int64_t kFar = std::numeric_limits<std::int64_t>::max();
  HostTensor x = HostTensor::Of<std::int64_t>({1, 3}, {kFar, -7, kFar - 1});
  HostTensor out = HostTensor::Empty<std::int64_t>({1, 6});
  REQUIRE(Run("rewire.resize", {&x, &out}, {{"mode", "nearest"}}) == "");
  CHECK(out.values<std::int64_t>() == std::vector<std::int64_t>{kFar, kFar, -7, -7, kFar - 1, kFar - 1});
  Check<std::int64_t>({2, 5, 8, 3}, "nearest");
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  HostTensor without_sign = HostTensor::Of<std::uint64_t>({2}, {kMost, 1});
  HostTensor twice = HostTensor::Empty<std::uint64_t>({4});
  REQUIRE(Run("rewire.resize", {&without_sign, &twice}, {{"mode", "nearest"}}) == "");
  CHECK(twice.values<std::uint64_t>() == std::vector<std::uint64_t>{kMost, kMost, 1, 1});
}

TEST_CASE("both layouts of an image are resized alike, along the axes in any order") {
  ForEachTarget([] {
    for (const char* mode : {"nearest", "linear", "cubic"}) {
      for (const auto& [height, width] : {std::pair{12, 20}, {3, 20}, {12, 4}, {3, 4}, {6, 20}, {6, 8}}) {
        CAPTURE(mode, height, width);
        constexpr std::int64_t kN = 2, kC = 5, kH = 6, kW = 8;
        const std::int64_t h = height, w = width;
        HostTensor first = HostTensor::Random({kN, kC, kH, kW}, 3);
        HostTensor last = HostTensor::Empty<float>({kN, kH, kW, kC});
        REQUIRE(Run("rewire.transpose", {&first, &last}, {{"perm", std::vector<std::int64_t>{0, 2, 3, 1}}}) ==
                "");
        HostTensor out_first = HostTensor::Empty<float>({kN, kC, h, w});
        HostTensor out_last = HostTensor::Empty<float>({kN, h, w, kC});
        HostTensor moved = HostTensor::Empty<float>({kN, kC, h, w});
        REQUIRE(Run("rewire.resize", {&first, &out_first}, {{"mode", mode}}) == "");
        REQUIRE(Run("rewire.resize", {&last, &out_last}, {{"mode", mode}}) == "");
        REQUIRE(Run("rewire.transpose", {&out_last, &moved},
                    {{"perm", std::vector<std::int64_t>{0, 3, 1, 2}}}) == "");
        double worst = 0;
        for (std::int64_t i = 0; i < moved.size(); ++i) {
          worst = std::max(worst, std::fabs(static_cast<double>(moved.elements<float>()[i]) -
                                            static_cast<double>(out_first.elements<float>()[i])));
        }
        CHECK(worst < 1e-5);
      }
    }
  });
}

TEST_CASE("taps of weight 0 hide what is infinite, and positions outside have their value") {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  ForEachTarget([] {
    for (const std::int64_t inner : {1, 6}) {
      CAPTURE(inner);
      // The corners stay, so every second position takes one element alone.
      HostTensor x = HostTensor::Empty<float>({3, inner}), out = HostTensor::Empty<float>({5, inner});
      for (std::int64_t i = 0; i < x.size(); ++i) x.elements<float>()[i] = i / inner == 1 ? kInf : 2;
      REQUIRE(Run("rewire.resize", {&x, &out},
                  {{"mode", "linear"}, {"coordinate_transformation_mode", "align_corners"}}) == "");
      for (std::int64_t i = 0; i < out.size(); ++i)
        CHECK(out.elements<float>()[i] == (i / inner == 0 || i / inner == 4 ? 2 : kInf));
      HostTensor roi = HostTensor::Of<float>({4}, {0.5f, 0, 1.5f, 1});
      for (const char* mode : {"nearest", "linear"}) {
        REQUIRE(Run("rewire.resize", {&x, &roi, &out},
                    {{"mode", mode},
                     {"coordinate_transformation_mode", "tf_crop_and_resize"},
                     {"extrapolation_value", -1.0}}) == "");
        for (std::int64_t i = 0; i < out.size(); ++i)
          CHECK(out.elements<float>()[i] == (i / inner < 2 ? kInf : i / inner == 2 ? 2 : -1));
      }
    }
  });
}

TEST_CASE("the nearest elements of a region keep their type, and beyond x is the given value") {
  HostTensor x = HostTensor::Of<std::int32_t>({2, 3}, {1 << 30, 2, 3, 4, 5, (1 << 30) + 1});
  // The last axis goes over both ends, and the first one backwards from row 1 to beyond row 0.
  HostTensor roi = HostTensor::Of<float>({4}, {1, -0.5F, -1, 1.5F});
  HostTensor out = HostTensor::Empty<std::int32_t>({3, 5});
  REQUIRE(Run("rewire.resize", {&x, &roi, &out},
              {{"coordinate_transformation_mode", "tf_crop_and_resize"}, {"extrapolation_value", -7.0}}) ==
          "");
  CHECK(out.values<std::int32_t>() == std::vector<std::int32_t>{-7, 4, 5, (1 << 30) + 1, -7,  //
                                                                -7, 1 << 30, 2, 3, -7,        //
                                                                -7, -7, -7, -7, -7});
}

TEST_CASE("a long antialiasing filter adds up all its taps") {
  ForEachTarget([] {
    for (const std::int64_t inner : {1, 4, 20}) {
      CAPTURE(inner);
      // The mean of a straight line under a symmetric filter is its value at the center.
      HostTensor x = HostTensor::Empty<float>({64, inner}), out = HostTensor::Empty<float>({4, inner});
      for (std::int64_t i = 0; i < x.size(); ++i) x.elements<float>()[i] = static_cast<float>(i / inner);
      REQUIRE(Run("rewire.resize", {&x, &out}, {{"mode", "linear"}, {"antialias", 1}}) == "");
      for (std::int64_t k = 0; k < inner; ++k) {
        CHECK(out.elements<float>()[inner + k] == Approx(23.5));
        CHECK(out.elements<float>()[2 * inner + k] == Approx(39.5));
      }
    }
  });
}

}  // namespace
}  // namespace rewire::test
