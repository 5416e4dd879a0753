// SPDX-License-Identifier: Apache-2.0
//
// Adds windows of numbers back into an image: the transpose of what a convolution reads.
#pragma once

#include "rewire/kernels/cpu/convolution/window.h"
#include "rewire/kernels/cpu/support/pace.h"
#include "rewire/kernels/cpu/support/wide_loop.h"

namespace rewire::kernel::cpu {

// Adds columns [taps, outputs] of the window to their plane [inputs]. Stops early if told to.
//
// Two taps side by side, of windows that go on by two, fill whole lines: they are added together, in vectors.
template <typename T>
void AddWindows(const Window& window, const T* columns, T* plane, Pace& pace) {
  const WindowAxis& depth = window.axes[0];
  const WindowAxis& rows = window.axes[1];
  const WindowAxis& line = window.axes[2];
  const std::int64_t outputs = window.outputs(), stride = line.stride;
  for (std::int64_t tap = 0, taps = 1; tap < window.taps() && pace.Spend(8);
       tap += taps, columns += taps * outputs) {
    const std::int64_t kx = tap % line.kernel;
    const std::int64_t ky = tap / line.kernel % rows.kernel;
    const std::int64_t kz = tap / (line.kernel * rows.kernel);
    std::int64_t z0, z1, y0, y1, first, last;
    depth.Reached(kz, &z0, &z1);
    rows.Reached(ky, &y0, &y1);
    line.Reached(kx, &first, &last);
    taps = 1;
    if (stride == 2 && line.dilation == 1 && kx + 1 < line.kernel) {
      std::int64_t first_of_next, last_of_next;
      line.Reached(kx + 1, &first_of_next, &last_of_next);
      if (first == first_of_next && last == last_of_next) taps = 2;
    }
    if (first >= last) continue;
    const std::int64_t shift = kx * line.dilation - line.before;
    for (std::int64_t oz = z0; oz < z1; ++oz) {
      const std::int64_t z = depth.start(oz) + kz * depth.dilation;
      const auto add = [=, &rows, &line](std::int64_t oy, std::int64_t begin, std::int64_t end) {
        const std::int64_t y = rows.start(oy) + ky * rows.dilation;
        T* to = plane + (z * rows.input + y) * line.input + shift;
        const T* from = columns + (oz * rows.output + oy) * line.output;
        if (stride == 1) {
          for (std::int64_t o = begin; o < end; ++o) to[o] += from[o];
        } else if (taps == 1) {
          for (std::int64_t o = begin; o < end; ++o) to[o * stride] += from[o];
        } else {
          const T* next = from + outputs;
          for (std::int64_t o = begin; o < end; ++o) {
            to[2 * o] += from[o];
            to[2 * o + 1] += next[o];
          }
        }
      };
      if (last - first <= kPace) {
        const auto lines = [=](std::int64_t begin, std::int64_t end) {
          WideLoop([=] {
            for (std::int64_t oy = y0 + begin; oy < y0 + end; ++oy) add(oy, first, last);
          });
        };
        if (!pace.For(y1 - y0, taps * (2 + last - first), lines)) return;
        continue;
      }
      for (std::int64_t oy = y0; oy < y1; ++oy) {
        const auto part = [&](std::int64_t begin, std::int64_t end) { add(oy, first + begin, first + end); };
        if (!pace.For(last - first, taps, part)) return;
      }
    }
  }
}

}  // namespace rewire::kernel::cpu
