// SPDX-License-Identifier: Apache-2.0
//
// The attributes of convolutions with packed weights, and their geometry over images [N, spatial..., C].
#pragma once

#include <algorithm>

#include "rewire/kernels/cpu/convolution/window.h"
#include "rewire/kernels/cpu/product/panels/panels.h"
#include "rewire/kernels/cpu/support/checks.h"

namespace rewire::kernel::cpu {

// The most positions of a window, or rows of positions where a row is always one piece of the image. It
// limits the pointers that a tile keeps on the stack.
inline constexpr std::int64_t kMostTaps = 256;

// True if every output position reads only the input position with the same index.
inline bool IsPointwise(const Window& window) {
  return std::all_of(std::begin(window.axes), std::end(window.axes), [](const WindowAxis& axis) {
    return axis.kernel == 1 && axis.stride == 1 && axis.input == axis.output && axis.before == 0;
  });
}

struct ImageAttributes {
  WindowAttributes window;
  std::int64_t channels = 1;  // of out

  Status Read(Attributes& attributes) {
    attributes.Require("channels");
    channels = attributes.Int("channels", 1, 1, kMostColumns);
    window.Read(attributes, true, false);
    if (Status s = window.Check(); !s.ok()) return s;
    if (window.kernel.empty() || window.kernel.size() > kMaxSpatial)
      return ValueError("attribute 'kernel_shape' has ", window.kernel.size(), " ints, expected 1 to ",
                        kMaxSpatial);
    const std::size_t axes = window.kernel.size() - (RowsAreWhole() ? 1 : 0);
    if (PositionsOf(axes) <= kMostTaps) return Status();
    return ValueError("attribute 'kernel_shape' is ", ShapeView(window.kernel.data(), window.kernel.size()),
                      ", expected at most ", kMostTaps, axes < window.kernel.size() ? " rows" : " positions");
  }
  // Refuses windows of more than kMostTaps positions, which depthwise convolutions do not take in rows.
  Status CheckPositions() const {
    if (PositionsOf(window.kernel.size()) <= kMostTaps) return Status();
    return ValueError("attribute 'kernel_shape' is ", ShapeView(window.kernel.data(), window.kernel.size()),
                      ", expected at most ", kMostTaps, " positions");
  }
  // The window's positions along its first axes, held a little above the limit.
  std::int64_t PositionsOf(std::size_t axes) const {
    std::int64_t positions = 1;
    for (std::size_t i = 0; i < axes; ++i)
      positions = std::min(positions * std::min(window.kernel[i], kMostTaps + 1), kMostTaps + 1);
    return positions;
  }
  // True if the window never leaves the image, and its positions along the last axis lie side by side.
  bool RowsAreWhole() const {
    const bool pads_nothing =
        window.auto_pad == AutoPad::kValid ||
        (window.auto_pad == AutoPad::kNotSet &&
         std::all_of(window.pads.begin(), window.pads.end(), [](std::int64_t pad) { return pad == 0; }));
    return pads_nothing && (window.dilations.empty() || window.dilations.back() == 1);
  }

  // True if x of this rank has the axes that the attributes describe.
  bool FitsRank(int rank) const {
    return rank - 2 == static_cast<int>(window.kernel.size()) && window.CheckCounts(rank - 2).ok();
  }
  // The most that one step and the reach of a window have together along an axis.
  std::int64_t MostReach() const {
    std::int64_t most = 0;
    for (std::size_t i = 0; i < window.kernel.size(); ++i) {
      const contract::WindowStep step = window.Step(i, window.kernel.size());
      const std::int64_t reach = contract::WindowReach(WindowSize(window.kernel[i]), step).value;
      most = std::max(most, Plus(reach, step.stride));
    }
    return most;
  }
  std::int64_t Taps() const {
    std::int64_t taps = 1;
    for (const std::int64_t size : window.kernel) taps = Times(taps, size);
    return taps;
  }
  std::int64_t LargestKernel() const { return *std::max_element(window.kernel.begin(), window.kernel.end()); }
  // The same for every shape of x.
  bool IsPointwise() const {
    const auto all = [](const std::vector<std::int64_t>& values, std::int64_t value) {
      return std::all_of(values.begin(), values.end(), [value](std::int64_t v) { return v == value; });
    };
    return all(window.kernel, 1) && all(window.strides, 1) && all(window.pads, 0);
  }

  // Checks x's rank and out's shape. Returns the window.
  Status Resolve(TensorView x, TensorView out, Window* resolved) const {
    if (x.ndim() < 3 || x.ndim() > 2 + kMaxSpatial)
      return ValueError("x has shape ", x.dims(), ", expected [N, spatial..., C]");
    Dims first;  // [N, C, spatial...]
    first.push_back(x.dim(0));
    first.push_back(x.dim(x.ndim() - 1));
    for (int i = 1; i + 1 < x.ndim(); ++i) first.push_back(x.dim(i));
    if (Status s = window.Resolve(first.view(), resolved); !s.ok()) return s;
    Dims expected;
    expected.push_back(x.dim(0));
    for (int i = kMaxSpatial - resolved->rank; i < kMaxSpatial; ++i)
      expected.push_back(resolved->axes[i].output);
    expected.push_back(channels);
    return CheckShape("out", out, expected.view());
  }
};

}  // namespace rewire::kernel::cpu
