// SPDX-License-Identifier: Apache-2.0
//
// Adds windows of numbers back into an image: the transpose of what a convolution reads.
#pragma once

#include "rewire/kernels/cpu/convolution/window.h"
#include "rewire/kernels/cpu/support/pace.h"

namespace rewire::kernel::cpu {

// Adds columns [taps, outputs] of the window to their plane [inputs]. Stops early if told to.
template <typename T>
void AddWindows(const Window& window, const T* columns, T* plane, Pace& pace) {
  const WindowAxis& depth = window.axes[0];
  const WindowAxis& rows = window.axes[1];
  const WindowAxis& line = window.axes[2];
  const std::int64_t outputs = window.outputs();
  for (std::int64_t tap = 0; tap < window.taps() && pace.Spend(8); ++tap, columns += outputs) {
    const std::int64_t kx = tap % line.kernel;
    const std::int64_t ky = tap / line.kernel % rows.kernel;
    const std::int64_t kz = tap / (line.kernel * rows.kernel);
    std::int64_t z0, z1, y0, y1, first, last;
    depth.Reached(kz, &z0, &z1);
    rows.Reached(ky, &y0, &y1);
    line.Reached(kx, &first, &last);
    const std::int64_t shift = kx * line.dilation - line.before;
    for (std::int64_t oz = z0; oz < z1; ++oz) {
      const std::int64_t z = depth.start(oz) + kz * depth.dilation;
      for (std::int64_t oy = y0; oy < y1; ++oy) {
        const std::int64_t y = rows.start(oy) + ky * rows.dilation;
        T* to = plane + (z * rows.input + y) * line.input + shift;
        const T* from = columns + (oz * rows.output + oy) * line.output;
        const auto add = [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t o = first + begin; o < first + end; ++o) to[o * line.stride] += from[o];
        };
        if (!pace.For(last - first, 1, add)) return;
      }
    }
  }
}

}  // namespace rewire::kernel::cpu
