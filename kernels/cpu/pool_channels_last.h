// SPDX-License-Identifier: Apache-2.0
// Pooling of images [N, spatial..., C]: all channels of a position are pooled side by side.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/cpu/parallel.h"
#include "kernels/cpu/window.h"

namespace rewire::kernel::cpu {

// x [N, spatial..., C] and out agree with the window of the attributes.
inline Status CheckPoolChannelsLast(const WindowAttributes& attributes, TensorView x, TensorView out,
                                    Window* window) {
  Checks checks;
  checks.Dense("x", x).Dense("out", out).SameDType("out", out, "x", x).NoOverlap("out", out, "x", x);
  if (Status s = checks.Take(); !s.ok()) return s;
  if (x.ndim() < 3) return ValueError("x has shape ", x.dims(), ", expected [N, spatial..., C]");
  Dims first;  // [N, C, spatial...]
  first.push_back(x.dim(0));
  first.push_back(x.dim(x.ndim() - 1));
  for (int i = 1; i + 1 < x.ndim(); ++i) first.push_back(x.dim(i));
  if (Status s = attributes.Resolve(first.view(), window); !s.ok()) return s;
  Dims expected;
  expected.push_back(x.dim(0));
  for (int i = kMaxSpatial - window->rank; i < kMaxSpatial; ++i) expected.push_back(window->axes[i].output);
  expected.push_back(first[1]);
  return CheckShape("out", out, expected.view());
}

// For each output position: out's channels become `first`; join(from, to, channels) with the channels of each
// input position under the window; end(to, channels, positions met, output position by axis).
template <typename T, typename Join, typename End>
void PoolChannelsLast(TensorView x, TensorView out, const Window& window, T first, const Join& join,
                      const End& end) {
  const WindowAxis &depth = window.axes[0], &rows = window.axes[1], &columns = window.axes[2];
  const std::int64_t channels = x.dim(x.ndim() - 1);
  const std::int64_t lines = x.dim(0) * depth.output * rows.output;
  const std::int64_t work = std::max<std::int64_t>(1, columns.output * window.taps() * channels);
  ParallelFor(lines, std::max<std::int64_t>(1, kGrain / work), [&](std::int64_t begin, std::int64_t last) {
    for (std::int64_t line = begin; line < last; ++line) {
      const std::int64_t position[] = {line / rows.output % depth.output, line % rows.output};
      const T* image = x.data<T>() + line / rows.output / depth.output * window.inputs() * channels;
      T* to = out.data<T>() + line * columns.output * channels;
      std::int64_t z0, z1, y0, y1, x0, x1;
      depth.Inside(position[0], &z0, &z1);
      rows.Inside(position[1], &y0, &y1);
      for (std::int64_t o = 0; o < columns.output; ++o, to += channels) {
        columns.Inside(o, &x0, &x1);
        std::fill_n(to, channels, first);
        for (std::int64_t i = z0; i < z1; ++i) {
          const std::int64_t z = depth.start(position[0]) + i * depth.dilation;
          for (std::int64_t j = y0; j < y1; ++j) {
            const std::int64_t y = rows.start(position[1]) + j * rows.dilation;
            const std::int64_t at = (z * rows.input + y) * columns.input + columns.start(o);
            for (std::int64_t k = x0; k < x1; ++k)
              join(image + (at + k * columns.dilation) * channels, to, channels);
          }
        }
        const std::int64_t met = std::max<std::int64_t>(0, z1 - z0) * std::max<std::int64_t>(0, y1 - y0) *
                                 std::max<std::int64_t>(0, x1 - x0);
        const std::int64_t place[kMaxSpatial] = {position[0], position[1], o};
        end(to, channels, met, place);
      }
    }
  });
}

}  // namespace rewire::kernel::cpu
