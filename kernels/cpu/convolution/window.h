// SPDX-License-Identifier: Apache-2.0
// The sliding window that convolution and pooling share: its attributes and its geometry over the spatial
// axes of x [N, C, ...].
#pragma once

#include <algorithm>
#include <cstdint>

#include "rewire/kernels/contract/window.h"
#include "rewire/kernels/cpu/support/checks.h"
#include "rewire/vm/kernel/attributes.h"

namespace rewire::kernel::cpu {

inline constexpr int kMaxSpatial = 3;

using contract::AutoPad;
using contract::WindowSize;
static_assert(WindowSize::kMost == kMostSize);

// One spatial axis. Output position o covers input positions o * stride - before + i * dilation for i <
// kernel.
struct WindowAxis : contract::WindowStep {
  std::int64_t kernel = 1;
  std::int64_t input = 1;
  std::int64_t output = 1;

  std::int64_t reach() const { return contract::WindowReach(WindowSize(kernel), *this).value; }
  // The elements that the windows of all outputs cover.
  std::int64_t covered() const {
    return contract::CoveredBy(WindowSize(output), WindowSize(kernel), *this).value;
  }
  std::int64_t start(std::int64_t o) const { return o * stride - before; }

  // The range of i for which position o's window lies inside the input. Empty (first >= last) if there is
  // none.
  [[gnu::always_inline]] void Inside(std::int64_t o, std::int64_t* first, std::int64_t* last) const {
    const std::int64_t begin = start(o);
    *first = begin < 0 ? (-begin + dilation - 1) / dilation : 0;
    *last = begin >= input ? 0 : std::min(kernel, (input - 1 - begin) / dilation + 1);
  }
  // The output positions o for which tap i lies inside the input.
  void Reached(std::int64_t i, std::int64_t* first, std::int64_t* last) const {
    const std::int64_t shift = i * dilation - before;
    *first = shift < 0 ? (-shift + stride - 1) / stride : 0;
    *last = shift >= input ? 0 : std::min(output, (input - 1 - shift) / stride + 1);
    *first = std::min(*first, *last);
  }
};

// Always has three axes. Those that x does not have come first and have size 1.
struct Window {
  WindowAxis axes[kMaxSpatial];
  int rank = kMaxSpatial;  // number of axes that x has

  std::int64_t inputs() const { return Times(axes[0].input, axes[1].input, axes[2].input); }
  std::int64_t outputs() const { return Times(axes[0].output, axes[1].output, axes[2].output); }
  std::int64_t taps() const { return Times(axes[0].kernel, axes[1].kernel, axes[2].kernel); }
  // [n, c, output sizes].
  Dims OutputDims(std::int64_t n, std::int64_t c) const;
};

// The attributes of a window, with the checks of a kernel. Make must return the error of Check.
struct WindowAttributes : contract::WindowAttributes {
  // The error of a value that Read could not accept.
  Status Check() const;

  // The window of size `kernel` over x [N, C, ...], with auto_pad resolved.
  Status Resolve(ShapeView x, ShapeView kernel, Window* window) const;
  // The same for pooling.
  Status Resolve(ShapeView x, Window* window) const {
    return Resolve(x, ShapeView(kernel.data(), kernel.size()), window);
  }
  // Checks that strides, dilations and pads are absent or have one value per spatial axis.
  Status CheckCounts(int spatial) const;
  // Stride, dilation and explicit pads of spatial axis i of `spatial`.
  WindowAxis Axis(int i, int spatial) const;
};

}  // namespace rewire::kernel::cpu
