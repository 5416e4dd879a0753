// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/cpu/vision/resample.h"

#include <algorithm>
#include <cmath>

#include "rewire/kernels/cpu/support/convert.h"
#include "rewire/kernels/cpu/support/workspace_sizes.h"

namespace rewire::kernel::cpu {

std::int64_t MostResizeWeights(const ResizeAttributes& attributes, std::int64_t input, std::int64_t output) {
  ResizeAxis axis;
  const std::int64_t all = Times(output, axis.MostTaps(attributes));
  if (!attributes.antialias || attributes.mode == Interpolation::kNearest) return all;
  // A filter that is stretched reaches over an input as long as the whole, and rounds up on both sides.
  return Times(1, Times(axis.MostTaps(attributes), input) + Times(4, output) + all);
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
