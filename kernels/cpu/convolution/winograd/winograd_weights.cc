// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/cpu/convolution/winograd/winograd_weights.h"

#include <algorithm>

#include "rewire/kernels/cpu/convolution/winograd/winograd_transforms.h"
#include "rewire/kernels/cpu/product/panels/panels.h"
#include "rewire/kernels/cpu/support/parallel.h"
#include "rewire/kernels/cpu/support/types.h"
#include "rewire/kernels/cpu/support/wide_loop.h"

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

// So many columns are transformed side by side; a panel has one or two times as many.
constexpr std::int64_t kLanes = kHalfPanel;
using Lanes = double[kLanes];

// Three weights to six points in each lane, in double; `step` apart.
inline void TransformWeights(const Lanes& g0, const Lanes& g1, const Lanes& g2, Lanes* to,
                             std::int64_t step) {
  constexpr double kRootOfTwo = 1.4142135623730951;
  for (std::int64_t j = 0; j < kLanes; ++j) {
    to[0][j] = g0[j];
    to[step][j] = -(2 * g0[j] + kRootOfTwo * g1[j] + g2[j]) / 3;
    to[2 * step][j] = -(2 * g0[j] - kRootOfTwo * g1[j] + g2[j]) / 3;
    to[3 * step][j] = (g0[j] + kRootOfTwo * g1[j] + 2 * g2[j]) / 6;
    to[4 * step][j] = (g0[j] - kRootOfTwo * g1[j] + 2 * g2[j]) / 6;
    to[5 * step][j] = g2[j];
  }
}

// The points of one window of each lane: the nine weights of lane j begin at from[j]. Lanes from `used` on
// are zeros. `step` lies between two points.
template <typename T>
void TransformWindows(const T* const from[kLanes], std::int64_t used, float* to, std::int64_t step) {
  Lanes taps[9] = {}, columns[kWinogradInputs * 3], points[kWinogradPoints];
  for (std::int64_t j = 0; j < used; ++j)
    for (std::int64_t i = 0; i < 9; ++i) taps[i][j] = double{static_cast<float>(from[j][i])};
  for (std::int64_t j = 0; j < 3; ++j) TransformWeights(taps[j], taps[3 + j], taps[6 + j], columns + j, 3);
  for (std::int64_t i = 0; i < kWinogradInputs; ++i)
    TransformWeights(columns[3 * i], columns[3 * i + 1], columns[3 * i + 2], points + i * kWinogradInputs, 1);
  for (std::int64_t i = 0; i < kWinogradPoints; ++i)
    for (std::int64_t j = 0; j < kLanes; ++j) to[i * step + j] = static_cast<float>(points[i][j]);
}

// Row k of a panel at every point, the elements beyond the columns too. `step` lies between two points.
template <typename T>
void PackRow(const T* w, std::int64_t columns, const Windows& windows, std::int64_t panel, std::int64_t k,
             std::int64_t step, float* out) {
  const std::int64_t width = WidthOfPanel(panel, columns), used = UsedOfPanel(panel, columns);
  float* to = out + panel * kPanelWidth * windows.depth() + k * width;
  for (std::int64_t first = 0; first < width; first += kLanes) {
    const T* from[kLanes];
    const std::int64_t here = std::clamp<std::int64_t>(used - first, 0, kLanes);
    for (std::int64_t j = 0; j < here; ++j) from[j] = w + windows.At(panel * kPanelWidth + first + j, k);
    WideLoop([&from, here, to, first, step] { TransformWindows(from, here, to + first, step); });
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
  const std::int64_t depth = windows.depth();
  return ParallelFor(Times(PanelCount(columns), depth), GrainOf(kGrain, kPanelWidth, 2 * kWinogradPoints),
                     [&](std::int64_t begin, std::int64_t end) {
                       for (std::int64_t row = begin; row < end; ++row) {
                         const std::int64_t panel = row / depth, k = row % depth;
                         if (w.Is<float>())
                           PackRow(w.data<float>(), columns, windows, panel, k, step, out.data<float>());
                         else
                           PackRow(w.data<BFloat16>(), columns, windows, panel, k, step, out.data<float>());
                       }
                     });
}

}  // namespace rewire::kernel::cpu
