// SPDX-License-Identifier: Apache-2.0
// Convolution in Winograd's form against the direct one.
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "rewire/kernels/cpu/convolution/winograd/winograd_transforms.h"
#include "rewire/tests/kernels/kernel_call.h"
#include "rewire/tests/kernels/targets.h"

namespace rewire::test {
namespace {

using kernel::cpu::ChooseWinogradTransforms;
using kernel::cpu::WinogradInput;
using kernel::cpu::WinogradTransforms;

std::int64_t RoundedUp(std::int64_t columns) { return (columns + 15) / 16 * 16; }

// Both forms of one convolution with a bias, a residual and an activation.
void CheckConvolution(const Shape& x_shape, std::int64_t channels, const std::vector<std::int64_t>& pads,
                      const std::vector<std::int64_t>& dilations = {1, 1}, const char* activation = "relu") {
  CAPTURE(x_shape, channels, pads, dilations, activation);
  const std::int64_t depth = x_shape[3];
  HostTensor x = HostTensor::Random(x_shape, 1), w = HostTensor::Random({channels, depth, 3, 3}, 2);
  HostTensor bias = HostTensor::Random({channels}, 3);
  HostTensor direct = HostTensor::Empty<float>({RoundedUp(channels), depth * 9});
  HostTensor points = HostTensor::Empty<float>({36, RoundedUp(channels), depth});
  REQUIRE(Run("rewire.packed.pack", {&w, &direct}, {{"order", "OI"}}) == "");
  REQUIRE(Run("rewire.packed.winograd_weights", {&w, &points}) == "");
  const Shape out_shape = {x_shape[0], x_shape[1] + pads[0] + pads[2] - 2 * dilations[0],
                           x_shape[2] + pads[1] + pads[3] - 2 * dilations[1], channels};
  HostTensor addend = HostTensor::Random(out_shape, 4);
  HostTensor expected = HostTensor::Empty<float>(out_shape), out = HostTensor::Empty<float>(out_shape);
  const AttributeList attributes = {{"channels", channels},
                                    {"kernel_shape", std::vector<std::int64_t>{3, 3}},
                                    {"pads", pads},
                                    {"dilations", dilations},
                                    {"activation", activation}};
  REQUIRE(Run("rewire.packed.conv", {&x, &direct, &bias, &addend, &expected}, attributes) == "");
  REQUIRE(Run("rewire.packed.winograd", {&x, &points, &bias, &addend, &out}, attributes) == "");
  const auto values = out.values<float>(), wanted = expected.values<float>();
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    CAPTURE(i);
    REQUIRE(std::fabs(values[i] - wanted[i]) <= 1e-5F * static_cast<float>(depth));
  }
  // The residual may lie where the sum goes.
  REQUIRE(Run("rewire.packed.winograd", {&x, &points, &bias, &addend, &addend}, attributes) == "");
  REQUIRE(addend.values<float>() == values);
}

TEST_CASE("winograd: tiles that images fill, and that they do not") {
  CheckConvolution({1, 6, 6, 16}, 16, {0, 0, 0, 0});    // one tile
  CheckConvolution({1, 4, 4, 16}, 16, {1, 1, 1, 1});    // with borders
  CheckConvolution({2, 5, 9, 20}, 40, {1, 1, 1, 1});    // channels that are no whole vectors
  CheckConvolution({1, 3, 3, 3}, 1, {0, 0, 0, 0});      // one output
  CheckConvolution({1, 1, 1, 1}, 17, {1, 1, 1, 1});     // the image smaller than the window
  CheckConvolution({3, 7, 4, 5}, 33, {0, 2, 3, 1});     // borders of all sizes
  CheckConvolution({1, 2, 30, 4}, 8, {5, 0, 5, 0});     // whole windows outside
  CheckConvolution({1, 66, 41, 24}, 32, {1, 1, 1, 1});  // several groups of tiles, and threads
  CheckConvolution({1, 26, 22, 64}, 64, {1, 1, 1, 1});  // weights too large for a group for each thread
}

TEST_CASE("winograd: dilations") {
  CheckConvolution({1, 12, 12, 16}, 16, {0, 0, 0, 0}, {2, 2});
  CheckConvolution({1, 11, 12, 8}, 16, {1, 1, 1, 1}, {2, 1});
  CheckConvolution({2, 13, 9, 8}, 20, {3, 2, 1, 0}, {3, 2});
  CheckConvolution({1, 9, 9, 8}, 16, {4, 4, 4, 4}, {4, 4});  // images of two and three positions
  CheckConvolution({1, 3, 12, 4}, 8, {7, 0, 7, 0}, {6, 1});  // more than there are outputs
  CheckConvolution({1, 66, 41, 24}, 32, {1, 1, 1, 1}, {2, 2});
}

TEST_CASE("winograd: activations that are computed where the outputs lie") {
  for (const char* activation : {"none", "hard_swish", "swish", "sigmoid"}) {
    CheckConvolution({1, 7, 9, 5}, 21, {1, 1, 1, 1}, {1, 1}, activation);
    CheckConvolution({1, 7, 9, 5}, 21, {1, 1, 1, 1}, {2, 2}, activation);
  }
}

// The 36 points of nine weights, by the formula.
std::vector<float> PointsOf(const float* weights) {
  const auto transform = [](double g0, double g1, double g2, double* to, std::int64_t step) {
    constexpr double kRootOfTwo = 1.4142135623730951;
    to[0] = g0;
    to[step] = -(2 * g0 + kRootOfTwo * g1 + g2) / 3;
    to[2 * step] = -(2 * g0 - kRootOfTwo * g1 + g2) / 3;
    to[3 * step] = (g0 + kRootOfTwo * g1 + 2 * g2) / 6;
    to[4 * step] = (g0 - kRootOfTwo * g1 + 2 * g2) / 6;
    to[5 * step] = g2;
  };
  double columns[18], all[36];
  for (std::int64_t j = 0; j < 3; ++j)
    transform(double{weights[j]}, double{weights[3 + j]}, double{weights[6 + j]}, columns + j, 3);
  for (std::int64_t i = 0; i < 6; ++i)
    transform(columns[3 * i], columns[3 * i + 1], columns[3 * i + 2], all + i * 6, 1);
  std::vector<float> points;
  for (const double value : all) points.push_back(static_cast<float>(value));
  return points;
}

TEST_CASE("winograd: the points of weights are the formula's to the bit, and zeros beyond the columns") {
  ForEachTarget([] {
    for (const std::int64_t columns : {1, 15, 16, 17, 32, 40, 49}) {
      constexpr std::int64_t kDepth = 3;
      HostTensor w = HostTensor::Random({columns, kDepth, 3, 3}, 7);
      const std::vector<float> weights = w.values<float>();
      const std::int64_t packed = RoundedUp(columns);
      HostTensor out = HostTensor::Empty<float>({36, packed, kDepth});
      REQUIRE(Run("rewire.packed.winograd_weights", {&w, &out}) == "");
      const std::vector<float> points = out.values<float>();
      for (std::int64_t column = 0; column < packed; ++column) {
        for (std::int64_t k = 0; k < kDepth; ++k) {
          const std::vector<float> expected = column < columns
                                                  ? PointsOf(weights.data() + (column * kDepth + k) * 9)
                                                  : std::vector<float>(36);
          const std::int64_t panel = column / 32, width = packed - panel * 32 < 32 ? 16 : 32;
          const std::int64_t at = panel * 32 * kDepth + k * width + column % 32;
          CAPTURE(columns, column, k);
          for (std::int64_t i = 0; i < 36; ++i)
            REQUIRE(points[static_cast<std::size_t>(i * packed * kDepth + at)] ==
                    expected[static_cast<std::size_t>(i)]);
        }
      }
    }
  });
}

TEST_CASE("winograd: the transforms of every instruction set") {
  ForEachTarget([] {
    const WinogradTransforms transforms = ChooseWinogradTransforms();
    constexpr std::int64_t kChannels = 21;
    const std::vector<float> image = HostTensor::Random({36, kChannels}, 1).values<float>();
    const std::vector<float> weights = HostTensor::Random({9}, 2).values<float>();
    std::vector<float> points(36 * kChannels), out(16 * kChannels, -7.0F);
    const std::vector<float> of_weights = PointsOf(weights.data());
    WinogradInput input = {{}, kChannels, points.data(), kChannels};
    for (std::size_t i = 0; i < 36; ++i) input.from[i] = image.data() + i * kChannels;
    transforms.input(input);
    for (std::size_t i = 0; i < points.size(); ++i) points[i] *= of_weights[i / kChannels];
    // All but the last row and column.
    transforms.output({points.data(),
                       kChannels,
                       kChannels,
                       nullptr,
                       nullptr,
                       out.data(),
                       4 * kChannels,
                       kChannels,
                       3,
                       3,
                       {}});
    for (std::int64_t y = 0; y < 4; ++y) {
      for (std::int64_t x = 0; x < 4; ++x) {
        for (std::int64_t c = 0; c < kChannels; ++c) {
          double expected = 0;
          for (std::int64_t k = 0; k < 9; ++k) {
            const std::int64_t from = ((y + k / 3) * 6 + x + k % 3) * kChannels + c;
            expected +=
                double{weights[static_cast<std::size_t>(k)]} * double{image[static_cast<std::size_t>(from)]};
          }
          CAPTURE(y, x, c);
          const auto given = double{out[static_cast<std::size_t>((y * 4 + x) * kChannels + c)]};
          REQUIRE(given == Approx(y == 3 || x == 3 ? -7 : expected).margin(2e-5));
        }
      }
    }
  });
}

TEST_CASE("winograd: what is not finite stays where it is") {
  std::vector<float> values(8 * 8, 0.0F);
  values[0] = std::numeric_limits<float>::infinity();
  HostTensor x = HostTensor::Of<float>({1, 8, 8, 1}, values), w = HostTensor::Random({16, 1, 3, 3}, 2);
  HostTensor points = HostTensor::Empty<float>({36, 16, 1}), out = HostTensor::Empty<float>({1, 8, 8, 16});
  REQUIRE(Run("rewire.packed.winograd_weights", {&w, &points}) == "");
  REQUIRE(Run("rewire.packed.winograd", {&x, &points, &out},
              {{"channels", std::int64_t{16}},
               {"kernel_shape", std::vector<std::int64_t>{3, 3}},
               {"pads", std::vector<std::int64_t>{1, 1, 1, 1}}}) == "");
  // It reaches no tile but its own.
  for (std::int64_t y = 0; y < 8; ++y) {
    for (std::int64_t column = 0; column < 8; ++column) {
      if (y >= 4 || column >= 4) CHECK(out.elements<float>()[(y * 8 + column) * 16] == 0);
    }
  }
}

TEST_CASE("winograd: other windows and weights are refused") {
  HostTensor x = HostTensor::Random({1, 8, 8, 4}, 1), out = HostTensor::Empty<float>({1, 6, 6, 16});
  HostTensor points = HostTensor::Random({36, 16, 4}, 2), short_points = HostTensor::Random({36, 16, 3}, 2);
  const std::vector<std::int64_t> kernel = {3, 3};
  const auto run = [&](HostTensor* w, const AttributeList& more) {
    AttributeList attributes = {{"channels", std::int64_t{16}}};
    attributes.insert(attributes.end(), more.begin(), more.end());
    return Run("rewire.packed.winograd", {&x, w, &out}, attributes);
  };
  CHECK(run(&points, {{"kernel_shape", kernel}}) == "");
  CHECK(run(&points, {{"kernel_shape", std::vector<std::int64_t>{3, 5}}}) ==
        "ValueError: rewire.packed.winograd: the window is [3, 5], expected 3 by 3 without strides along the "
        "last two axes");
  CHECK(run(&points, {{"kernel_shape", kernel}, {"strides", std::vector<std::int64_t>{1, 2}}}) != "");
  CHECK(run(&short_points, {{"kernel_shape", kernel}}) ==
        "ValueError: rewire.packed.winograd: w has shape [36, 16, 3], expected [36, 16, 4]");
  HostTensor wide = HostTensor::Random({16, 4, 3, 5}, 1);
  CHECK(Run("rewire.packed.winograd_weights", {&wide, &points}) ==
        "ValueError: rewire.packed.winograd_weights: w has shape [16, 4, 3, 5], expected [M, C, 3, 3] or [M, "
        "C, planes, 3, 3]");
}

}  // namespace
}  // namespace rewire::test
