// SPDX-License-Identifier: Apache-2.0
//
// Adds windows of numbers back into an image: the transpose of what a convolution reads.
#pragma once

#include <hwy/base.h>

#include <algorithm>
#include <cstdint>

#include "rewire/kernels/cpu/convolution/window.h"
#include "rewire/kernels/cpu/support/pace.h"
#include "rewire/kernels/cpu/support/wide_loop.h"

namespace rewire::kernel::cpu {

// Adds `count` numbers of each of some lines to places that are `stride` apart.
template <typename T>
void AddLines(const T* from, std::int64_t from_step, std::int64_t lines, std::int64_t count, T* to,
              std::int64_t to_step, std::int64_t stride) {
  constexpr std::int64_t kWorthwhile = 128;  // numbers that are worth a loop of their own
  if (stride == 1 && lines * count >= kWorthwhile) {
    return WideLoop([=] {
      for (std::int64_t l = 0; l < lines; ++l) {
        const T* HWY_RESTRICT in = from + l * from_step;
        T* HWY_RESTRICT out = to + l * to_step;
        for (std::int64_t i = 0; i < count; ++i) out[i] += in[i];
      }
    });
  }
  for (std::int64_t l = 0; l < lines; ++l, from += from_step, to += to_step) {
    for (std::int64_t i = 0; i < count; ++i) to[i * stride] += from[i];
  }
}

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
      const std::int64_t y = rows.start(y0) + ky * rows.dilation;
      T* to = plane + (z * rows.input + y) * line.input + shift;
      const T* from = columns + (oz * rows.output + y0) * line.output;
      for (std::int64_t o = first; o < last; o += kPace) {
        const std::int64_t count = std::min(kPace, last - o);
        const auto add = [&](std::int64_t begin, std::int64_t end) {
          AddLines(from + begin * line.output + o, line.output, end - begin, count,
                   to + begin * rows.stride * line.input + o * line.stride, rows.stride * line.input,
                   line.stride);
        };
        if (!pace.For(y1 - y0, count, add)) return;
      }
    }
  }
}

}  // namespace rewire::kernel::cpu
