// SPDX-License-Identifier: Apache-2.0
// The attributes of convolutions by packed weights and their geometry over images [N, spatial..., C].
#pragma once

#include <algorithm>

#include "kernels/cpu/checks.h"
#include "kernels/cpu/panels.h"
#include "kernels/cpu/window.h"

namespace rewire::kernel::cpu {

// Positions of a window: bounds the pointers that a tile keeps on the stack.
inline constexpr std::int64_t kMostTaps = 256;

// Every output position reads the input position that it has itself.
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
    std::int64_t taps = 1;
    for (const std::int64_t size : window.kernel) taps *= std::min(size, kMostTaps + 1);
    if (taps <= kMostTaps) return Status();
    return ValueError("attribute 'kernel_shape' is ", ShapeView(window.kernel.data(), window.kernel.size()),
                      ", expected at most ", kMostTaps, " positions");
  }

  std::int64_t LargestKernel() const { return *std::max_element(window.kernel.begin(), window.kernel.end()); }
  // Whatever x's shape is.
  bool IsPointwise() const {
    const auto all = [](const std::vector<std::int64_t>& values, std::int64_t value) {
      return std::all_of(values.begin(), values.end(), [value](std::int64_t v) { return v == value; });
    };
    return all(window.kernel, 1) && all(window.strides, 1) && all(window.pads, 0);
  }

  // Checks x's rank and out's shape; gives the window.
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
