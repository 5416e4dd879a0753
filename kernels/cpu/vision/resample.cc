// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/cpu/vision/resample.h"

#include <algorithm>
#include <cmath>

#include "rewire/kernels/cpu/support/convert.h"
#include "rewire/kernels/cpu/support/workspace_sizes.h"

namespace rewire::kernel::cpu {
namespace {

// Keys' cubic convolution kernel.
double CubicWeight(double a, double distance) {
  const double x = std::fabs(distance);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
  return 0;
}

double LinearWeight(double distance) { return std::max(0.0, 1 - std::fabs(distance)); }

// A position that sums with sizes do not take out of the range of int64; NaN becomes 0.
std::int64_t Position(double x) { return ToType<std::int64_t>(x != x ? 0 : std::clamp(x, -0x1p56, 0x1p56)); }

std::int64_t Nearest(Rounding rounding, double x) {
  const double down = std::floor(x);
  const bool half = x - down == 0.5;
  switch (rounding) {
    case Rounding::kPreferFloor:
      return Position(half ? down : std::floor(x + 0.5));
    case Rounding::kPreferCeil:
      return Position(std::floor(x + 0.5));
    case Rounding::kFloor:
      return Position(down);
    case Rounding::kCeil:
      return Position(std::ceil(x));
  }
  return 0;
}

}  // namespace

void ResizeAttributes::Read(Attributes& attributes) {
  mode = static_cast<Interpolation>(attributes.Choice("mode", {"nearest", "linear", "cubic"}, 0));
  coordinates = static_cast<Coordinates>(
      attributes.Choice("coordinate_transformation_mode",
                        {"half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric",
                         "tf_crop_and_resize", "half_pixel_symmetric", "tf_half_pixel_for_nn"},
                        0));
  rounding = static_cast<Rounding>(
      attributes.Choice("nearest_mode", {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"}, 0));
  cubic_a = attributes.Float("cubic_coeff_a", -0.75);
  outside = attributes.Float("extrapolation_value", 0);
  exclude_outside = attributes.Bool("exclude_outside", false);
  antialias = attributes.Bool("antialias", false);
  axes = attributes.Ints("axes", {});
  rounds = attributes.Choice("keep_aspect_ratio_policy", kResizePolicies, 0) != 0;
}

double ResizeAxis::SourceOf(const ResizeAttributes& attributes, std::int64_t o) const {
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

std::int64_t ResizeAxis::MostTaps(const ResizeAttributes& attributes) const {
  if (attributes.mode == Interpolation::kNearest) return 1;
  const std::int64_t reach = attributes.mode == Interpolation::kLinear ? 1 : 2;
  if (!attributes.antialias || scale >= 1) return 2 * reach;
  // Held far from the limits of int64, which a scale of almost 0 passes.
  return ToType<std::int64_t>(std::min(2 * std::ceil(static_cast<double>(reach) / scale), 0x1p50)) + 2;
}

std::int64_t ResizeAxis::MostWeights(const ResizeAttributes& attributes, std::int64_t input,
                                     std::int64_t output) {
  ResizeAxis axis;
  const std::int64_t all = Times(output, axis.MostTaps(attributes));
  if (!attributes.antialias || attributes.mode == Interpolation::kNearest) return all;
  // A filter that is stretched reaches over an input as long as the whole, and rounds up on both sides.
  return Times(1, Times(axis.MostTaps(attributes), input) + Times(4, output) + all);
}

Taps ResizeAxis::At(const ResizeAttributes& attributes, std::int64_t o, double* weights, Pace& pace) const {
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
  const bool linear = attributes.mode == Interpolation::kLinear;
  const std::int64_t reach = linear ? 1 : 2;
  // A shrinking filter that looks at all it merges is stretched over it.
  const double stretch = attributes.antialias && scale < 1 ? scale : 1;
  const double radius = static_cast<double>(reach) / stretch;
  if (stretch == 1) {
    taps.first = Position(std::floor(source)) - (reach - 1);
    taps.count = 2 * reach;
  } else {
    taps.first = Position(std::floor(source - radius)) + 1;
    taps.count =
        std::clamp<std::int64_t>(Position(std::ceil(source + radius)) - taps.first, 0, MostTaps(attributes));
  }
  double sum = 0;
  for (std::int64_t i = 0; i < taps.count && pace.Spend(8); ++i) {
    const std::int64_t position = taps.first + i;
    const double distance = (static_cast<double>(position) - source) * stretch;
    weights[i] = linear ? LinearWeight(distance) : CubicWeight(attributes.cubic_a, distance);
    if (attributes.exclude_outside && (position < 0 || position >= input)) weights[i] = 0;
    sum += weights[i];
  }
  const bool normalizes = stretch != 1 || attributes.exclude_outside;
  for (std::int64_t i = 0; normalizes && sum != 0 && i < taps.count && pace.Spend(1); ++i) weights[i] /= sum;
  return taps;
}

double ScaleAt(TensorView scales, std::int64_t i) {
  return scales.Is<float>() ? static_cast<double>(scales.data<float>()[i]) : scales.data<double>()[i];
}

namespace {

// The size times scales[i] in the precision of the scales, as ONNX Runtime multiplies (docs/onnx-values.md):
// 10 times the float 1.4 is 14, though that float is less than 1.4. Products that floats do not count one by
// one are exact.
double ProductBy(std::int64_t size, TensorView scales, std::int64_t i) {
  constexpr double kFloatsCount = 0x1p24;
  const double exact = static_cast<double>(size) * ScaleAt(scales, i);
  if (!scales.Is<float>() || exact > kFloatsCount || static_cast<double>(size) > kFloatsCount) return exact;
  const float product = static_cast<float>(size) * scales.data<float>()[i];
  return static_cast<double>(product);
}

}  // namespace

Status ResizedByScales(const ResizeAttributes& attributes, ShapeView x, TensorView scales, Dims* result) {
  const auto rank = static_cast<int>(x.size());
  const std::size_t named = attributes.axes.empty() ? x.size() : attributes.axes.size();
  const auto count = static_cast<std::int64_t>(named);
  if (Status s = Checks().Dense("scales", scales).Shape("scales", scales, ShapeView(&count, 1)).Take();
      !s.ok())
    return s;
  if (!scales.Is<float>() && !scales.Is<double>()) return WrongDType(Floats(), "scales", scales);
  bool marked[kMaxKernelRank];
  const ShapeView axes(attributes.axes.data(), attributes.axes.size());
  if (Status s = MarkAxes(axes, rank, marked); !s.ok()) return s;
  *result = Dims(x);
  for (int i = 0; i < static_cast<int>(named); ++i) {
    const std::int64_t axis = axes.empty() ? i : axes[static_cast<std::size_t>(i)];
    std::int64_t& dim = (*result)[static_cast<int>(axis < 0 ? axis + rank : axis)];
    const double scale = ScaleAt(scales, i);
    const double size = attributes.rounds ? std::floor(static_cast<double>(dim) * scale + 0.5)
                                          : std::floor(ProductBy(dim, scales, i));
    if (!(scale > 0) || size > 0x1p40)
      return ValueError("element ", i, " of scales is ", scale, ", which is no scale");
    dim = ToType<std::int64_t>(size);
  }
  return Status();
}

}  // namespace rewire::kernel::cpu
