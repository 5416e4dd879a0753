// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/cpu/convolution/winograd/winograd_weights.h"

#include <algorithm>

#include "rewire/kernels/cpu/convolution/winograd/winograd_transforms.h"
#include "rewire/kernels/cpu/product/panels/panels.h"
#include "rewire/kernels/cpu/support/parallel.h"
#include "rewire/kernels/cpu/support/types.h"

namespace rewire::kernel::cpu {
namespace {

// A channel of the output takes `depth` windows: those of all input channels, plane by plane.
struct Windows {
  std::int64_t planes, channels;
  std::int64_t depth() const { return planes * channels; }
  // The first element of window k of a column.
  std::int64_t At(std::int64_t column, std::int64_t k) const {
    return ((column * channels + k % channels) * planes + k / channels) * 9;
  }
};

// All of a panel's elements, those beyond the columns too. `step` lies between two points.
void PackPanel(TensorView w, const Windows& windows, std::int64_t panel, std::int64_t step, float* out,
               Pace& pace) {
  const std::int64_t columns = w.dim(0), depth = windows.depth();
  const std::int64_t width = WidthOfPanel(panel, columns), used = UsedOfPanel(panel, columns);
  float* to = out + panel * kPanelWidth * depth;
  for (std::int64_t k = 0; k < depth; ++k) {
    if (!pace.Spend(Times(width, 2 * kWinogradPoints))) return;
    for (std::int64_t j = 0; j < width; ++j) {
      float points[kWinogradPoints] = {};
      const std::int64_t at = windows.At(panel * kPanelWidth + j, k);
      float taps[9];
      if (j < used && w.Is<BFloat16>())
        std::transform(w.data<BFloat16>() + at, w.data<BFloat16>() + at + 9, taps,
                       [](BFloat16 tap) { return static_cast<float>(tap); });
      if (j < used) TransformWinogradWeights(w.Is<float>() ? w.data<float>() + at : taps, points);
      for (std::int64_t i = 0; i < kWinogradPoints; ++i) to[i * step + k * width + j] = points[i];
    }
  }
}

}  // namespace

Status WinogradWeights::operator()(TensorView w, TensorView out) const {
  Checks checks;
  checks.Dense("w", w).Dense("out", out).NoOverlap("out", out, "w", w);
  if (Status s = checks.Take(); !s.ok()) return s;
  if (!w.Is<float>() && !w.Is<BFloat16>()) return WrongDType(Types<float, BFloat16>(), "w", w);
  if (!out.Is<float>()) return TypeError("out has dtype ", DTypeName(out.dtype()), ", expected f32");
  const int rank = w.ndim();
  if ((rank != 4 && rank != 5) || w.dim(rank - 2) != 3 || w.dim(rank - 1) != 3)
    return ValueError("w has shape ", w.dims(), ", expected [M, C, 3, 3] or [M, C, planes, 3, 3]");
  const Windows windows = {rank == 5 ? w.dim(2) : 1, w.dim(1)};
  const std::int64_t columns = w.dim(0);
  const std::int64_t expected[] = {kWinogradPoints, PackedColumns(columns), windows.depth()};
  if (Status s = CheckShape("out", out, ShapeView(expected, 3)); !s.ok()) return s;
  const std::int64_t step = Times(PackedColumns(columns), windows.depth());
  return ParallelFor(PanelCount(columns), GrainOf(kGrain, kPanelWidth, windows.depth(), 64),
                     [&](std::int64_t begin, std::int64_t end, Pace& pace) {
                       for (std::int64_t p = begin; p < end; ++p)
                         PackPanel(w, windows, p, step, out.data<float>(), pace);
                     });
}

}  // namespace rewire::kernel::cpu
