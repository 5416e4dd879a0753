// SPDX-License-Identifier: Apache-2.0
//
// Pooling of images [N, spatial..., C]. All channels of a position are pooled together.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "rewire/kernels/cpu/convolution/window.h"
#include "rewire/kernels/cpu/support/parallel.h"

namespace rewire::kernel::cpu {

// The costs of an output position besides its channels, in simple operations.
inline constexpr std::int64_t kPositionWork = 32;

// Checks that x [N, spatial..., C] and out match the window of the attributes.
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

// Does three things for each output position. It sets the position's channels in out to `first`. It calls
// join(from, to, channels) for each input position under the window. Then it calls end(to, channels, number
// of input positions, output position by axis). `join` and `end` may be called for groups of channels.
template <typename T, typename Join, typename End>
[[nodiscard]] Status PoolChannelsLast(TensorView x, TensorView out, const Window& window, T first,
                                      const Join& join, const End& end) {
  const WindowAxis &depth = window.axes[0], &rows = window.axes[1], &columns = window.axes[2];
  const std::int64_t channels = x.dim(x.ndim() - 1);
  const std::int64_t lines = Times(x.dim(0), depth.output, rows.output);
  const std::int64_t work = Times(window.taps(), channels);  // of one position
  const std::int64_t grain = GrainOf(kGrain, columns.output, Plus(kPositionWork, work));
  // `in_groups` is std::true_type if a position is so much work that its channels come in groups.
  const auto run = [&](auto in_groups, std::int64_t begin, std::int64_t last, Pace& pace) {
    for (std::int64_t line = begin; line < last; ++line) {
      const std::int64_t position[] = {line / rows.output % depth.output, line % rows.output};
      const T* image = x.data<T>() + line / rows.output / depth.output * window.inputs() * channels;
      T* to = out.data<T>() + line * columns.output * channels;
      std::int64_t z0, z1, y0, y1, x0, x1;
      depth.Inside(position[0], &z0, &z1);
      rows.Inside(position[1], &y0, &y1);
      for (std::int64_t o = 0; o < columns.output; ++o, to += channels) {
        columns.Inside(o, &x0, &x1);
        const auto in_runs = [&](const auto& body) {
          if constexpr (in_groups) return pace.For(channels, 1, body);
          body(std::int64_t{0}, channels);
          return true;
        };
        const auto clear = [&](std::int64_t c, std::int64_t stop) { std::fill(to + c, to + stop, first); };
        if (!pace.Spend(std::min(work, kPace)) || !in_runs(clear)) return;
        for (std::int64_t i = z0; i < z1; ++i) {
          const std::int64_t z = depth.start(position[0]) + i * depth.dilation;
          for (std::int64_t j = y0; j < y1; ++j) {
            const std::int64_t y = rows.start(position[1]) + j * rows.dilation;
            const std::int64_t at = (z * rows.input + y) * columns.input + columns.start(o);
            for (std::int64_t k = x0; k < x1; ++k) {
              const T* from = image + (at + k * columns.dilation) * channels;
              const auto meet = [&](std::int64_t c, std::int64_t stop) { join(from + c, to + c, stop - c); };
              if (!in_runs(meet)) return;
            }
          }
        }
        const std::int64_t met = std::max<std::int64_t>(0, z1 - z0) * std::max<std::int64_t>(0, y1 - y0) *
                                 std::max<std::int64_t>(0, x1 - x0);
        const std::int64_t place[kMaxSpatial] = {position[0], position[1], o};
        const auto finish = [&](std::int64_t c, std::int64_t stop) { end(to + c, stop - c, met, place); };
        if (!in_runs(finish)) return;
      }
    }
  };
  return ParallelFor(lines, grain, [&](std::int64_t begin, std::int64_t last, Pace& pace) {
    if (work > kPace) {
      run(std::true_type(), begin, last, pace);
    } else {
      run(std::false_type(), begin, last, pace);
    }
  });
}

}  // namespace rewire::kernel::cpu
