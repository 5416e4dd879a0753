// SPDX-License-Identifier: Apache-2.0
//
// The attributes of a resize, and which input positions and weights make up an output position. Kernels of
// every kind and the C source that the compiler writes read them here. The rules are those of ONNX's operator
// Resize; where ONNX leaves them open, those of ONNX Runtime (docs/onnx-values.md).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "rewire/kernels/contract/position.h"

namespace rewire::contract {

enum class Interpolation { kNearest, kLinear, kCubic };
enum class Coordinates {
  kHalfPixel,
  kPytorchHalfPixel,
  kAlignCorners,
  kAsymmetric,
  kTfCropAndResize,
  kSymmetric,
  kTfHalfPixel,
};
enum class Rounding { kPreferFloor, kPreferCeil, kFloor, kCeil };

// The values of the attribute keep_aspect_ratio_policy.
inline const std::initializer_list<std::string_view> kResizePolicies = {"stretch", "not_larger",
                                                                        "not_smaller"};

struct ResizeAttributes {
  Interpolation mode = Interpolation::kNearest;
  Coordinates coordinates = Coordinates::kHalfPixel;
  Rounding rounding = Rounding::kPreferFloor;
  double cubic_a = -0.75;
  double outside = 0;  // tf_crop_and_resize: the value outside the image
  bool exclude_outside = false;
  bool antialias = false;
  bool rounds = false;  // sizes by scales are rounded to the nearest, otherwise down
  std::vector<std::int64_t> axes;

  // `Given` reads attributes by Choice, Float, Bool and Ints, as kernel::Attributes does.
  template <typename Given>
  void Read(Given& given) {
    mode = static_cast<Interpolation>(given.Choice("mode", {"nearest", "linear", "cubic"}, 0));
    coordinates = static_cast<Coordinates>(
        given.Choice("coordinate_transformation_mode",
                     {"half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_crop_and_resize",
                      "half_pixel_symmetric", "tf_half_pixel_for_nn"},
                     0));
    rounding = static_cast<Rounding>(
        given.Choice("nearest_mode", {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"}, 0));
    cubic_a = given.Float("cubic_coeff_a", -0.75);
    outside = given.Float("extrapolation_value", 0);
    exclude_outside = given.Bool("exclude_outside", false);
    antialias = given.Bool("antialias", false);
    axes = given.Ints("axes", {});
    rounds = given.Choice("keep_aspect_ratio_policy", kResizePolicies, 0) != 0;
  }

  // Whether each output element is one of the input's.
  bool Copies() const {
    return mode == Interpolation::kNearest && coordinates != Coordinates::kTfCropAndResize;
  }
};

// The taps of one output position along one axis: weights[i] for input position first + i. Positions beyond
// an end use the element at that end.
struct Taps {
  std::int64_t first = 0;
  std::int64_t count = 0;
  bool outside = false;
};

// Keys' cubic convolution kernel.
inline double CubicWeight(double a, double distance) {
  const double x = std::fabs(distance);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
  return 0;
}

// One axis of a resize.
struct ResizeAxis {
  std::int64_t input = 1;
  std::int64_t output = 1;
  double scale = 1;      // output over input, as given
  double roi_begin = 0;  // of tf_crop_and_resize, in fractions of the input
  double roi_end = 1;

  bool IsIdentity(const ResizeAttributes& attributes) const {
    return input == output && scale == 1 && attributes.coordinates != Coordinates::kTfCropAndResize;
  }

  // The most taps of a position.
  std::int64_t MostTaps(const ResizeAttributes& attributes) const {
    if (attributes.mode == Interpolation::kNearest) return 1;
    const std::int64_t reach = Reach(attributes);
    if (!attributes.antialias || scale >= 1) return 2 * reach;
    // A scale of almost 0 gives a number that int64 does not hold.
    return PositionOf(std::min(2 * std::ceil(static_cast<double>(reach) / scale), 0x1p50)) + 2;
  }

  // Computes the taps of output position o with their weights, of which there is memory for MostTaps.
  // `pace.Spend(operations)` is false if the caller must stop; the taps are incomplete then.
  template <typename Pace>
  Taps At(const ResizeAttributes& attributes, std::int64_t o, double* weights, Pace& pace) const {
    const double source = SourceOf(attributes, o);
    Taps taps;
    if (attributes.coordinates == Coordinates::kTfCropAndResize)
      taps.outside = source < 0 || source > static_cast<double>(input - 1);
    if (attributes.mode == Interpolation::kNearest) {
      taps.first = Nearest(attributes.rounding, source);
      taps.count = 1;
      weights[0] = 1;
      return taps;
    }
    const std::int64_t reach = Reach(attributes);
    // A shrinking filter that looks at all it merges is stretched over it.
    const double stretch = attributes.antialias && scale < 1 ? scale : 1;
    const double radius = static_cast<double>(reach) / stretch;
    if (stretch == 1) {
      taps.first = PositionOf(std::floor(source)) - (reach - 1);
      taps.count = 2 * reach;
    } else {
      taps.first = PositionOf(std::floor(source - radius)) + 1;
      taps.count = std::clamp<std::int64_t>(PositionOf(std::ceil(source + radius)) - taps.first, 0,
                                            MostTaps(attributes));
    }
    double sum = 0;
    for (std::int64_t i = 0; i < taps.count && pace.Spend(8); ++i) {
      const std::int64_t position = taps.first + i;
      const double distance = (static_cast<double>(position) - source) * stretch;
      weights[i] = attributes.mode == Interpolation::kLinear ? std::max(0.0, 1 - std::fabs(distance))
                                                             : CubicWeight(attributes.cubic_a, distance);
      if (attributes.exclude_outside && (position < 0 || position >= input)) weights[i] = 0;
      sum += weights[i];
    }
    const bool normalizes = stretch != 1 || attributes.exclude_outside;
    for (std::int64_t i = 0; normalizes && sum != 0 && i < taps.count && pace.Spend(1); ++i)
      weights[i] /= sum;
    return taps;
  }

 private:
  static std::int64_t Reach(const ResizeAttributes& attributes) {
    return attributes.mode == Interpolation::kLinear ? 1 : 2;
  }

  static std::int64_t Nearest(Rounding rounding, double x) {
    const double down = std::floor(x);
    const bool half = x - down == 0.5;
    switch (rounding) {
      case Rounding::kPreferFloor:
        return PositionOf(half ? down : std::floor(x + 0.5));
      case Rounding::kPreferCeil:
        return PositionOf(std::floor(x + 0.5));
      case Rounding::kFloor:
        return PositionOf(down);
      case Rounding::kCeil:
        return PositionOf(std::ceil(x));
    }
    return 0;
  }

  double SourceOf(const ResizeAttributes& attributes, std::int64_t o) const {
    const auto x = static_cast<double>(o);
    const auto last_in = static_cast<double>(input - 1);
    // The last output position is that of the last input position, whatever the scale, as PyTorch and ONNX
    // Runtime have it (docs/onnx-values.md).
    const auto last_out = static_cast<double>(output - 1);
    switch (attributes.coordinates) {
      case Coordinates::kHalfPixel:
        return (x + 0.5) / scale - 0.5;
      case Coordinates::kPytorchHalfPixel:
        return output > 1 ? (x + 0.5) / scale - 0.5 : 0;
      case Coordinates::kAlignCorners:
        return last_out > 0 ? x * last_in / last_out : 0;
      case Coordinates::kAsymmetric:
        return x / scale;
      case Coordinates::kTfCropAndResize:
        return last_out > 0 ? roi_begin * last_in + x * (roi_end - roi_begin) * last_in / last_out
                            : 0.5 * (roi_begin + roi_end) * last_in;
      case Coordinates::kTfHalfPixel:
        return (x + 0.5) / scale;
      case Coordinates::kSymmetric: {
        const double adjustment = static_cast<double>(output) / (scale * static_cast<double>(input));
        const double center = static_cast<double>(input) / 2;
        return center * (1 - adjustment) + (x + 0.5) / scale - 0.5;
      }
    }
    return 0;
  }
};

}  // namespace rewire::contract
