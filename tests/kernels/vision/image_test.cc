// SPDX-License-Identifier: Apache-2.0
// Resizing, sampling and regions of images.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <functional>

#include "rewire/kernels/cpu/support/half.h"
#include "rewire/tests/kernels/kernel_call.h"
#include "rewire/tests/kernels/targets.h"

namespace rewire::test {
namespace {

using F = std::vector<float>;
using Ints = std::vector<std::int64_t>;

void CheckWithin(const HostTensor& out, const std::vector<double>& expected, double tolerance = 1e-4) {
  const auto values = out.values<float>();
  REQUIRE(values.size() == expected.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    INFO("element " << i);
    CHECK(static_cast<double>(values[i]) == Approx(expected[i]).margin(tolerance));
  }
}

F Resized(const F& x, std::int64_t size, const AttributeList& attributes) {
  HostTensor in = HostTensor::Of<float>({std::ssize(x)}, x);
  HostTensor out = HostTensor::Empty<float>({size});
  REQUIRE(Run("rewire.resize", {&in, &out}, attributes) == "");
  return out.values<float>();
}

TEST_CASE("bf16 is resized as f32, and then rounded") {
  using kernel::cpu::BFloat16;
  for (const char* mode : {"nearest", "linear", "cubic"}) {
    CAPTURE(mode);
    HostTensor x = HostTensor::Empty<float>({1, 3, 5, 6}), half = HostTensor::Empty<BFloat16>({1, 3, 5, 6});
    const auto values = HostTensor::Random({1, 3, 5, 6}, 1).values<float>();
    for (std::int64_t i = 0; i < x.size(); ++i) {
      half.elements<BFloat16>()[i] = BFloat16(values[static_cast<std::size_t>(i)]);
      x.elements<float>()[i] = static_cast<float>(half.elements<BFloat16>()[i]);
    }
    HostTensor expected = HostTensor::Empty<float>({1, 6, 10, 6});
    HostTensor out = HostTensor::Empty<BFloat16>({1, 6, 10, 6});
    REQUIRE(Run("rewire.resize", {&x, &expected}, {{"mode", mode}}) == "");
    REQUIRE(Run("rewire.resize", {&half, &out}, {{"mode", mode}}) == "");
    for (std::int64_t i = 0; i < out.size(); ++i)
      REQUIRE(out.elements<BFloat16>()[i].bits == BFloat16(expected.elements<float>()[i]).bits);
  }
}

TEST_CASE("nearest neighbors by every rounding and coordinate") {
  const F x = {0, 1, 2, 3};
  CHECK(Resized(x, 8, {{"coordinate_transformation_mode", "asymmetric"}, {"nearest_mode", "floor"}}) ==
        F{0, 0, 1, 1, 2, 2, 3, 3});
  CHECK(Resized(x, 8, {{"coordinate_transformation_mode", "asymmetric"}, {"nearest_mode", "ceil"}}) ==
        F{0, 1, 1, 2, 2, 3, 3, 3});
  CHECK(Resized(x, 8,
                {{"coordinate_transformation_mode", "asymmetric"}, {"nearest_mode", "round_prefer_ceil"}}) ==
        F{0, 1, 1, 2, 2, 3, 3, 3});
  CHECK(Resized(x, 8, {{"coordinate_transformation_mode", "asymmetric"}}) == F{0, 0, 1, 1, 2, 2, 3, 3});
  CHECK(Resized(x, 2, {}) == F{0, 2});
  CHECK(Resized(x, 7, {{"coordinate_transformation_mode", "align_corners"}, {"nearest_mode", "floor"}}) ==
        F{0, 0, 1, 1, 2, 2, 3});
}

TEST_CASE("linear and cubic resizing follow their filters") {
  const F x = {1, 4, 2, 8, 5};
  const auto filter = [&](const char* mode, std::int64_t size, const std::function<double(double)>& weight,
                          int reach) {
    const F values = Resized(x, size, {{"mode", mode}});
    for (std::int64_t o = 0; o < size; ++o) {
      const double at = (static_cast<double>(o) + 0.5) * 5 / static_cast<double>(size) - 0.5;
      double sum = 0;
      for (int i = static_cast<int>(std::floor(at)) - reach + 1;
           i <= static_cast<int>(std::floor(at)) + reach; ++i) {
        const auto held = static_cast<std::size_t>(std::clamp(i, 0, 4));
        sum += weight(std::fabs(at - i)) * static_cast<double>(x[held]);
      }
      INFO(mode << " " << size << " at " << o);
      CHECK(static_cast<double>(values[static_cast<std::size_t>(o)]) == Approx(sum).margin(1e-5));
    }
  };
  const auto cubic = [](double d) {
    const double a = -0.75;
    return d <= 1  ? (a + 2) * d * d * d - (a + 3) * d * d + 1
           : d < 2 ? a * d * d * d - 5 * a * d * d + 8 * a * d - 4 * a
                   : 0;
  };
  for (std::int64_t size : {3, 5, 7, 12}) {
    filter(
        "linear", size, [](double d) { return std::max(0.0, 1 - d); }, 1);
    filter("cubic", size, cubic, 2);
  }
  // Every axis on its own: the corners stay, the middle is the mean of four.
  HostTensor square = HostTensor::Of<float>({1, 1, 2, 2}, {1, 2, 3, 4});
  HostTensor out = HostTensor::Empty<float>({1, 1, 3, 3});
  REQUIRE(Run("rewire.resize", {&square, &out},
              {{"mode", "linear"}, {"coordinate_transformation_mode", "align_corners"}}) == "");
  CHECK(out.values<float>() == F{1, 1.5f, 2, 2, 2.5f, 3, 3, 3.5f, 4});
}

TEST_CASE("antialiasing, crops, scales and integers") {
  // Halving with antialias: triangles of reach 2, whose weights 1/4, 3/4, 3/4, 1/4 add up to 2; the ends
  // repeat.
  CheckWithin(
      HostTensor::Of<float>({2}, Resized({1, 2, 3, 4}, 2, {{"mode", "linear"}, {"antialias", 1}})),
      {(0.25 * 1 + 0.75 * 1 + 0.75 * 2 + 0.25 * 3) / 2, (0.25 * 2 + 0.75 * 3 + 0.75 * 4 + 0.25 * 4) / 2});
  HostTensor x = HostTensor::Of<float>({4}, {0, 10, 20, 30});
  HostTensor roi = HostTensor::Of<float>({2}, {0.5f, 1.5f});
  HostTensor none = HostTensor::Empty<float>({0});
  HostTensor out = HostTensor::Empty<float>({3});
  const AttributeList crop = {{"mode", "linear"},
                              {"coordinate_transformation_mode", "tf_crop_and_resize"},
                              {"extrapolation_value", -1.0}};
  REQUIRE(Run("rewire.resize", {&x, &roi, &out}, crop) == "");
  CHECK(out.values<float>() == F{15, 30, -1});
  CHECK(Run("rewire.resize", {&x, &none, &out}, crop) ==
        "ValueError: rewire.resize: roi is missing, which tf_crop_and_resize asks for");
  HostTensor scales = HostTensor::Of<float>({1}, {0.8f});
  REQUIRE(Run("rewire.resize", {&x, &none, &scales, &out}, {}) == "");
  CHECK(out.values<float>() == F{0, 10, 30});
  HostTensor two = HostTensor::Empty<float>({2});
  CHECK(Run("rewire.resize", {&x, &none, &scales, &two}, {}) ==
        "ValueError: rewire.resize: out has shape [2], expected [3]");
  HostTensor bytes = HostTensor::Of<std::uint8_t>({2}, {0, 255});
  HostTensor four = HostTensor::Empty<std::uint8_t>({4});
  REQUIRE(Run("rewire.resize", {&bytes, &four}, {{"mode", "linear"}}) == "");
  CHECK(four.values<std::uint8_t>() == std::vector<std::uint8_t>{0, 64, 191, 255});

  HostTensor shape = HostTensor::Of<std::int64_t>({3}, {2, 10, 20});
  HostTensor result = HostTensor::Empty<std::int64_t>({3});
  HostTensor sizes = HostTensor::Of<std::int64_t>({2}, {5, 5});
  REQUIRE(Run("rewire.shape.resize_sizes", {&shape, &sizes, &result}, {{"axes", Ints{1, 2}}}) == "");
  CHECK(result.values<std::int64_t>() == Ints{2, 5, 5});
  REQUIRE(Run("rewire.shape.resize_sizes", {&shape, &sizes, &result},
              {{"axes", Ints{1, 2}}, {"keep_aspect_ratio_policy", "not_larger"}}) == "");
  CHECK(result.values<std::int64_t>() == Ints{2, 3, 5});
  REQUIRE(Run("rewire.shape.resize_sizes", {&shape, &sizes, &result},
              {{"axes", Ints{1, 2}}, {"keep_aspect_ratio_policy", "not_smaller"}}) == "");
  CHECK(result.values<std::int64_t>() == Ints{2, 5, 10});
  HostTensor three = HostTensor::Of<float>({3}, {1, 0.55f, 2});
  REQUIRE(Run("rewire.shape.resize", {&shape, &three, &result}) == "");
  CHECK(result.values<std::int64_t>() == Ints{2, 5, 40});
  HostTensor negative = HostTensor::Of<float>({3}, {1, -1, 2});
  CHECK(Run("rewire.shape.resize", {&shape, &negative, &result}) ==
        "ValueError: rewire.shape.resize: element 1 of scales is -1.000000, which is no scale");
}

TEST_CASE("the identity grid gives the image back, in one to three axes") {
  const std::pair<Shape, Shape> cases[] = {
      {{2, 3, 7}, {2, 1, 2}}, {{2, 3, 5, 6}, {2, 2, 3}}, {{1, 2, 3, 4, 5}, {1, 3, 4}}};
  for (const auto& [shape, theta_shape] : cases) {
    for (int align : {0, 1}) {
      for (const char* mode : {"bilinear", "nearest", "bicubic"}) {
        if (shape.size() == 5 && mode == std::string("bicubic")) continue;
        CAPTURE(shape, align, mode);
        HostTensor x = HostTensor::Random(shape, 3);
        HostTensor theta = HostTensor::Of<float>(
            theta_shape, F(static_cast<std::size_t>(theta_shape[0] * theta_shape[1] * theta_shape[2]), 0));
        const std::int64_t axes = theta_shape[1];
        for (std::int64_t i = 0; i < theta_shape[0] * axes; ++i)
          theta.elements<float>()[i * (axes + 1) + i % axes] = 1;
        Shape grid_shape = {shape[0]};
        grid_shape.insert(grid_shape.end(), shape.begin() + 2, shape.end());
        grid_shape.push_back(axes);
        HostTensor grid = HostTensor::Empty<float>(grid_shape);
        REQUIRE(Run("rewire.affine_grid", {&theta, &grid}, {{"align_corners", align}}) == "");
        HostTensor out = HostTensor::Empty<float>(shape);
        REQUIRE(Run("rewire.grid_sample", {&x, &grid, &out}, {{"align_corners", align}, {"mode", mode}}) ==
                "");
        CheckWithin(out, std::vector<double>(x.elements<float>().begin(), x.elements<float>().end()), 1e-5);
      }
    }
  }
}

F First(const HostTensor& tensor, std::size_t count) {
  F values = tensor.values<float>();
  values.resize(count);
  return values;
}

TEST_CASE("what lies outside of the image") {
  HostTensor x = HostTensor::Of<float>({1, 1, 4}, {1, 2, 3, 4});
  const F points = {-2, -1.25f, 0, 1.25f, 2, std::nanf("")};
  HostTensor grid = HostTensor::Of<float>({1, 6, 1}, points);
  HostTensor out = HostTensor::Empty<float>({1, 1, 6});
  // Positions -2.5, -1, 1.5, 4, 5.5 and none.
  REQUIRE(Run("rewire.grid_sample", {&x, &grid, &out}) == "");
  CHECK(First(out, 5) == F{0, 0, 2.5f, 0, 0});
  REQUIRE(Run("rewire.grid_sample", {&x, &grid, &out}, {{"padding_mode", "border"}}) == "");
  CHECK(First(out, 5) == F{1, 1, 2.5f, 4, 4});
  REQUIRE(Run("rewire.grid_sample", {&x, &grid, &out}, {{"padding_mode", "reflection"}}) == "");
  CHECK(First(out, 5) == F{2.5f, 1, 2.5f, 4, 2.5f});
  HostTensor flat = HostTensor::Random({1, 6, 2}, 1);
  CHECK(Run("rewire.grid_sample", {&x, &flat, &out}) ==
        "ValueError: rewire.grid_sample: grid has shape [1, 6, 2], expected [1, ..., 1] of the rank of x [1, "
        "1, 4]");
}

// The definition, one point after the other.
TEST_CASE("many points of a grid, within the image and beyond, by every mode and padding") {
  const std::int64_t rows = 5, columns = 9, points = 150;
  HostTensor x = HostTensor::Random({1, 2, rows, columns}, 1),
             grid = HostTensor::Random({1, 1, points, 2}, 2);
  for (std::int64_t i = 0; i < grid.size(); ++i) grid.elements<float>()[i] *= 2.5F;
  struct Axis {
    double size;
    bool align, reflects, holds;
    double Fold(double at) const {
      if (holds) return std::fmin(std::fmax(at, 0), size - 1);
      if (!reflects) return at;
      const double low = align ? 0 : -0.5, span = align ? size - 1 : size;
      double rest = std::fmod(std::fabs(at - low), 2 * span);
      if (rest > span) rest = 2 * span - rest;
      return std::fmin(std::fmax(rest + low, 0), size - 1);
    }
    double Source(double at) const { return align ? (at + 1) / 2 * (size - 1) : ((at + 1) * size - 1) / 2; }
  };
  ForEachTarget([&] {
    for (const char* padding : {"zeros", "border", "reflection"}) {
      for (const bool align : {false, true}) {
        for (const std::string mode : {"linear", "nearest", "cubic"}) {
          CAPTURE(padding, align, mode);
          HostTensor out = HostTensor::Empty<float>({1, 2, 1, points});
          REQUIRE(Run("rewire.grid_sample", {&x, &grid, &out},
                      {{"mode", mode.c_str()}, {"padding_mode", padding}, {"align_corners", align}}) == "");
          const bool reflects = padding[0] == 'r', holds = padding[0] == 'b';
          const Axis axes[] = {{static_cast<double>(rows), align, reflects, holds},
                               {static_cast<double>(columns), align, reflects, holds}};
          const auto cubic = [](double d) {
            return d <= 1 ? (1.25 * d - 2.25) * d * d + 1 : d < 2 ? ((-0.75 * d + 3.75) * d - 6) * d + 3 : 0;
          };
          for (std::int64_t i = 0; i < out.size(); ++i) {
            double places[2], sum = 0;
            for (int a = 0; a < 2; ++a) {
              places[a] = axes[a].Source(static_cast<double>(grid.elements<float>()[i % points * 2 + 1 - a]));
              if (mode != "cubic") places[a] = axes[a].Fold(places[a]);
              if (mode == "nearest") places[a] = std::nearbyint(places[a]);
            }
            const int before = mode == "cubic" ? 1 : 0, after = mode == "cubic"    ? 2
                                                                : mode == "linear" ? 1
                                                                                   : 0;
            for (int dy = -before; dy <= after; ++dy) {
              for (int dx = -before; dx <= after; ++dx) {
                const double y = std::floor(places[0]) + dy, z = std::floor(places[1]) + dx;
                const auto weight = [&](double d) { return mode == "cubic" ? cubic(d) : 1 - d; };
                const double by = mode == "nearest"
                                      ? 1
                                      : weight(std::fabs(places[0] - y)) * weight(std::fabs(places[1] - z));
                const double at_y = axes[0].Fold(y), at_z = axes[1].Fold(z);
                const bool inside = at_y >= 0 && at_y < axes[0].size && at_z >= 0 && at_z < axes[1].size;
                if (inside) {
                  const auto offset = static_cast<std::int64_t>(std::nearbyint(at_y)) * columns +
                                      static_cast<std::int64_t>(std::nearbyint(at_z));
                  sum += by * static_cast<double>(x.elements<float>()[i / points * rows * columns + offset]);
                }
              }
            }
            REQUIRE(static_cast<double>(out.elements<float>()[i]) == Approx(sum).epsilon(1e-5).margin(1e-5));
          }
        }
      }
    }
  });
}

TEST_CASE("regions are pooled") {
  HostTensor x = HostTensor::Empty<float>({1, 1, 6, 6});
  for (std::int64_t i = 0; i < 36; ++i) x.elements<float>()[i] = static_cast<float>(i);
  HostTensor rois = HostTensor::Of<float>({1, 4}, {1, 1, 5, 5});
  HostTensor images = HostTensor::Of<std::int64_t>({1}, {0});
  HostTensor out = HostTensor::Empty<float>({1, 1, 2, 2});
  const AttributeList size = {{"output_height", 2}, {"output_width", 2}};
  // The image is a plane, so that averages are its values at the centers of the bins.
  REQUIRE(Run("rewire.roi_align", {&x, &rois, &images, &out}, size) == "");
  CheckWithin(out, {1.5 * 6 + 1.5, 1.5 * 6 + 3.5, 3.5 * 6 + 1.5, 3.5 * 6 + 3.5});
  HostTensor other = HostTensor::Of<std::int64_t>({1}, {1});
  CHECK(Run("rewire.roi_align", {&x, &rois, &other, &out}, size) ==
        "ValueError: rewire.roi_align: region 0 of batch_indices is of image 1.000000, x has 1");
  HostTensor five = HostTensor::Of<float>({1, 5}, {0, 1, 1, 4, 4});
  REQUIRE(Run("rewire.max_roi_pool", {&x, &five, &out}) == "");
  CHECK(out.values<float>() == F{14, 16, 26, 28});
  HostTensor nan = HostTensor::Of<float>({1, 5}, {0, 1, std::nanf(""), 4, 4});
  CHECK(Run("rewire.max_roi_pool", {&x, &nan, &out}) ==
        "ValueError: rewire.max_roi_pool: region 0 of rois is no region");
}

TEST_CASE("regions of many sizes are pooled like a loop over their pixels") {
  constexpr std::int64_t kHeight = 9;
  // Images of many channels are turned, if they are not too large.
  const std::int64_t image_channels = GENERATE(3, 70), image_width = image_channels == 3 ? 300 : 41;
  HostTensor x = HostTensor::Random({2, image_channels, kHeight, image_width}, 5);
  x.elements<float>()[7] = std::nanf("");
  F regions;
  for (int i = 0; i < 24; ++i) {
    const auto left = static_cast<float>(i * 53 % 320 - 10), top = static_cast<float>(i * 7 % 13 - 2);
    const auto wide = static_cast<float>(i * i * 11 % 290 - 3), high = static_cast<float>(i % 10 - 1);
    for (const float value : {static_cast<float>(i % 2), left, top, left + wide, top + high})
      regions.push_back(value);
  }
  HostTensor rois = HostTensor::Of<float>({24, 5}, regions);
  for (const auto& [height, width] : {std::pair<std::int64_t, std::int64_t>{1, 1}, {2, 3}, {7, 5}}) {
    HostTensor out = HostTensor::Empty<float>({24, image_channels, height, width});
    F expected;
    for (std::int64_t task = 0; task < 24 * image_channels * height * width; ++task) {
      const std::int64_t column = task % width, row = task / width % height;
      const std::int64_t channel = task / width / height % image_channels;
      const float* roi = regions.data() + task / width / height / image_channels * 5;
      const auto range = [](float first, float last, std::int64_t i, std::int64_t bins, std::int64_t size) {
        const std::int64_t start = std::lround(first), pixels = std::max(1L, std::lround(last) - start + 1);
        return std::pair(std::clamp<std::int64_t>(start + i * pixels / bins, 0, size),
                         std::clamp<std::int64_t>(start + ((i + 1) * pixels + bins - 1) / bins, 0, size));
      };
      const auto [y0, y1] = range(roi[2], roi[4], row, height, kHeight);
      const auto [x0, x1] = range(roi[1], roi[3], column, width, image_width);
      float most = y0 < y1 && x0 < x1 ? -HUGE_VALF : 0;
      for (std::int64_t y = y0; y < y1; ++y) {
        for (std::int64_t at = x0; at < x1; ++at) {
          const std::int64_t plane = static_cast<std::int64_t>(roi[0]) * image_channels + channel;
          const float value = x.elements<float>()[(plane * kHeight + y) * image_width + at];
          if (value > most) most = value;
        }
      }
      expected.push_back(most);
    }
    ForEachTarget([&] {
      REQUIRE(Run("rewire.max_roi_pool", {&x, &rois, &out}) == "");
      CHECK(out.values<float>() == expected);
    });
  }
}

TEST_CASE("roi_align of many channels at once is that of few") {
  constexpr std::int64_t kFew = 7, kRegions = 40, kBins = 2 * 3;
  // A part of the channels is turned at a time if the image is large.
  const bool is_large = GENERATE(false, true);
  const std::int64_t groups = is_large ? 3 : 10, height = is_large ? 300 : 9, width = is_large ? 310 : 11;
  const std::int64_t plane = height * width;
  HostTensor x = HostTensor::Random({2, kFew * groups, height, width}, 3);
  F regions;
  Ints numbers;
  for (int i = 0; i < kRegions; ++i) {
    const auto left = static_cast<float>(i * 53 % 17 - 3), top = static_cast<float>(i * 7 % 13 - 2);
    const auto wide = static_cast<float>(i * i * 11 % 90) / 8, high = static_cast<float>(i % 10);
    for (const float value : {left, top, left + wide, top + high}) regions.push_back(value);
    numbers.push_back(i % 3 == 0 ? 1 : 0);
  }
  HostTensor rois = HostTensor::Of<float>({kRegions, 4}, regions);
  HostTensor images = HostTensor::Of<std::int64_t>({kRegions}, numbers);
  for (const std::int64_t samples : {0, 1, 3}) {
    for (const char* mode : {"avg", "max"}) {
      CAPTURE(samples, mode);
      const AttributeList attributes = {{"output_height", 2},
                                        {"output_width", 3},
                                        {"sampling_ratio", samples},
                                        {"mode", mode},
                                        {"spatial_scale", is_large ? 8.0 : 1.0}};
      // So few channels are not turned.
      std::vector<double> expected(static_cast<std::size_t>(kRegions * kFew * groups * kBins));
      for (std::int64_t group = 0; group < groups; ++group) {
        HostTensor part = HostTensor::Empty<float>({2, kFew, height, width});
        for (std::int64_t i = 0; i < part.size(); ++i) {
          const std::int64_t image = i / (kFew * plane);
          part.elements<float>()[i] = x.elements<float>()[i + (image * (groups - 1) + group) * kFew * plane];
        }
        HostTensor out = HostTensor::Empty<float>({kRegions, kFew, 2, 3});
        REQUIRE(Run("rewire.roi_align", {&part, &rois, &images, &out}, attributes) == "");
        for (std::int64_t i = 0; i < out.size(); ++i) {
          const std::int64_t roi = i / (kFew * kBins);
          expected[static_cast<std::size_t>(i + (roi * (groups - 1) + group) * kFew * kBins)] =
              static_cast<double>(out.elements<float>()[i]);
        }
      }
      ForEachTarget([&] {
        HostTensor out = HostTensor::Empty<float>({kRegions, kFew * groups, 2, 3});
        REQUIRE(Run("rewire.roi_align", {&x, &rois, &images, &out}, attributes) == "");
        CheckWithin(out, expected, 1e-5);
      });
    }
  }
}

// More samples than are kept, and regions beyond the image: the image is a plane, so averages are known.
TEST_CASE("roi_align takes as many samples as it is told, inside and outside") {
  HostTensor x = HostTensor::Empty<float>({1, 2, 40, 40});
  for (std::int64_t i = 0; i < 3200; ++i) x.elements<float>()[i] = static_cast<float>(i % 1600);
  HostTensor rois = HostTensor::Of<float>({2, 4}, {1, 1, 33, 33, -90, -90, -60, -60});
  HostTensor images = HostTensor::Of<std::int64_t>({2}, {0, 0});
  HostTensor out = HostTensor::Empty<float>({2, 2, 2, 2});
  for (const std::int64_t samples : {1, 3, 64, 65, 200}) {
    REQUIRE(Run("rewire.roi_align", {&x, &rois, &images, &out},
                {{"output_height", 2}, {"output_width", 2}, {"sampling_ratio", samples}}) == "");
    std::vector<double> expected;
    for (int channel = 0; channel < 2; ++channel) {
      for (const double at : {8.5 * 40 + 8.5, 8.5 * 40 + 24.5, 24.5 * 40 + 8.5, 24.5 * 40 + 24.5})
        expected.push_back(at);
    }
    expected.resize(16, 0);
    CheckWithin(out, expected, 1e-2);
  }
}

TEST_CASE("non-maximum suppression keeps the best of what overlaps") {
  HostTensor boxes = HostTensor::Of<float>({1, 6, 4}, {0, 0,  1, 1,  0, 0.1f,  1, 1.1f,  0, -0.1f, 1, 0.9f,
                                                       0, 10, 1, 11, 0, 10.1f, 1, 11.1f, 1, 101,   0, 100});
  HostTensor scores = HostTensor::Of<float>({1, 1, 6}, {0.9f, 0.75f, 0.6f, 0.95f, 0.5f, 0.3f});
  HostTensor most = HostTensor::Of<std::int64_t>({1}, {3}), iou = HostTensor::Of<float>({1}, {0.5f}),
             least = HostTensor::Of<float>({1}, {0.4f});
  HostTensor shape = HostTensor::Empty<std::int64_t>({2});
  REQUIRE(Run("rewire.shape.nms", {&boxes, &scores, &most, &iou, &shape}) == "");
  CHECK(shape.values<std::int64_t>() == Ints{3, 3});
  HostTensor three = HostTensor::Empty<std::int64_t>({3, 3});
  REQUIRE(Run("rewire.nms", {&boxes, &scores, &most, &iou, &three}) == "");
  CHECK(three.values<std::int64_t>() == Ints{0, 0, 3, 0, 0, 0, 0, 0, 5});
  HostTensor two = HostTensor::Empty<std::int64_t>({2, 3});
  REQUIRE(Run("rewire.nms", {&boxes, &scores, &most, &iou, &least, &two}) == "");
  CHECK(two.values<std::int64_t>() == Ints{0, 0, 3, 0, 0, 0});
  CHECK(Run("rewire.nms", {&boxes, &scores, &most, &iou, &least, &three}) ==
        "ValueError: rewire.nms: out has shape [3, 3], expected [2, 3]");
  HostTensor centers = HostTensor::Of<float>({1, 2, 4}, {0.5f, 0.5f, 1, 1, 0.6f, 0.5f, 1, 1});
  HostTensor pair = HostTensor::Of<float>({1, 1, 2}, {0.1f, 0.2f});
  HostTensor one = HostTensor::Empty<std::int64_t>({1, 3});
  REQUIRE(Run("rewire.nms", {&centers, &pair, &most, &iou, &one}, {{"center_point_box", 1}}) == "");
  CHECK(one.values<std::int64_t>() == Ints{0, 0, 1});
}

TEST_CASE("deform_conv reads each tap at an offset") {
  HostTensor x = HostTensor::Random({2, 4, 5, 6}, 1), w = HostTensor::Random({6, 2, 3, 2}, 2);
  HostTensor bias = HostTensor::Random({6}, 3), none = HostTensor::Empty<float>({0});
  HostTensor plain = HostTensor::Empty<float>({2, 6, 3, 5}), out = plain;
  HostTensor offset = HostTensor::Of<float>({2, 24, 3, 5}, std::vector<float>(2 * 24 * 15, 0));
  REQUIRE(Run("rewire.conv", {&x, &w, &bias, &plain}, {{"group", 2}}) == "");
  const AttributeList groups = {{"group", 2}, {"offset_group", 2}};
  REQUIRE(Run("rewire.deform_conv", {&x, &w, &offset, &bias, &out}, groups) == "");
  for (std::int64_t i = 0; i < plain.size(); ++i)
    CHECK(static_cast<double>(out.elements<float>()[i]) ==
          Approx(static_cast<double>(plain.elements<float>()[i])).margin(1e-5));

  // Offsets of all kinds, against each tap by itself.
  for (std::int64_t i = 0; i < offset.size(); ++i)
    offset.elements<float>()[i] = static_cast<float>(i * 37 % 101 - 50) / 8;
  const auto pixel = [&](std::int64_t plane, double row, double column) {
    if (row < 0 || row > 4 || column < 0 || column > 5) return 0.0;
    return static_cast<double>(x.elements<float>()[plane * 30 + static_cast<std::int64_t>(row * 6 + column)]);
  };
  std::vector<double> sums;
  for (std::int64_t o = 0; o < plain.size(); ++o) {
    const std::int64_t position = o % 15, channel = o / 15 % 6, image = o / 90, group = channel / 3;
    double sum = static_cast<double>(bias.elements<float>()[channel]);
    for (std::int64_t t = 0; t < 12; ++t) {
      const float* of_tap = offset.elements<float>().begin() + ((image * 2 + group) * 12 + t % 6 * 2) * 15;
      const double y = static_cast<double>(position / 5 + t % 6 / 2) + static_cast<double>(of_tap[position]);
      const double at =
          static_cast<double>(position % 5 + t % 2) + static_cast<double>(of_tap[15 + position]);
      const double top = std::floor(y), left = std::floor(at);
      for (int corner = 0; corner < 4; ++corner) {
        const double row = top + corner / 2, column = left + corner % 2;
        sum += (1 - std::fabs(y - row)) * (1 - std::fabs(at - column)) *
               pixel(image * 4 + group * 2 + t / 6, row, column) *
               static_cast<double>(w.elements<float>()[channel * 12 + t]);
      }
    }
    sums.push_back(sum);
  }
  ForEachTarget([&] {
    REQUIRE(Run("rewire.deform_conv", {&x, &w, &offset, &bias, &out}, groups) == "");
    CheckWithin(out, sums);
  });

  // One tap of one pixel: between rows, with a mask, and outside.
  HostTensor image = HostTensor::Of<float>({1, 1, 2, 2}, {1, 2, 3, 4}),
             one = HostTensor::Of<float>({1, 1, 1, 1}, {1});
  HostTensor shifts = HostTensor::Of<float>({1, 2, 2, 2}, {0.5f, 0, -1, 0, 0, 0, 0, std::nanf("")});
  HostTensor mask = HostTensor::Of<float>({1, 1, 2, 2}, {2, 1, 1, 1}),
             result = HostTensor::Empty<float>({1, 1, 2, 2});
  REQUIRE(Run("rewire.deform_conv", {&image, &one, &shifts, &none, &mask, &result}) == "");
  CHECK(result.values<float>() == std::vector<float>{4, 2, 1, 0});
  CHECK(Run("rewire.deform_conv", {&image, &one, &mask, &result}) ==
        "ValueError: rewire.deform_conv: offset has shape [1, 1, 2, 2], expected [1, 2, 2, 2]");
}

}  // namespace
}  // namespace rewire::test
