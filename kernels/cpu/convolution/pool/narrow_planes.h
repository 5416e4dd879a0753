// SPDX-License-Identifier: Apache-2.0
//
// Pools of images with the channels first whose lines are shorter than vectors pay for. Several planes become
// one image with the channels last, whose vectors go over planes, and the result is turned back. Each element
// meets the same numbers in the same order, so that the results are the same.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <tuple>
#include <type_traits>

#include "rewire/kernels/cpu/convolution/pool/pool_lines.h"
#include "rewire/kernels/cpu/convolution/pool/window_loops.h"
#include "rewire/kernels/cpu/movement/transposed_block.h"
#include "rewire/kernels/cpu/support/wide_loop.h"

namespace rewire::kernel::cpu {

// Planes side by side, and what is kept of them.
template <typename T>
inline constexpr std::int64_t kNarrowPlanes = 64 / std::int64_t{sizeof(T)};
inline constexpr std::int64_t kNarrowBytes = 49152;
inline constexpr std::int64_t kNarrowOutBytes = 16384;
inline constexpr std::int64_t kMostNarrowColumns = 32;

// Strips lie along one axis: the rows of an image, or its depth where it has one. Slices are what lies behind
// one position of this axis.
struct StripAxis {
  explicit StripAxis(const Window& window) {
    const WindowAxis& depth = window.axes[0];
    along = depth.input == 1 && depth.output == 1 && depth.kernel == 1 ? 1 : 0;
    for (int i = along + 1; i < kMaxSpatial; ++i) {
      input = Times(input, window.axes[i].input);
      output = Times(output, window.axes[i].output);
    }
  }
  int along;
  std::int64_t input = 1, output = 1;  // elements of a slice
};

// A window's positions [first, last) of the axis, as a window of its own over what they read of the image,
// from slice `begin` on.
struct WindowStrip {
  WindowStrip(const Window& whole, int along, std::int64_t first, std::int64_t last) : window(whole) {
    const WindowAxis& axis = whole.axes[along];
    begin = std::clamp<std::int64_t>(axis.start(first), 0, axis.input);
    const std::int64_t end = std::clamp(axis.start(last - 1) + axis.reach(), begin, axis.input);
    WindowAxis& part = window.axes[along];
    part.input = end - begin;
    part.output = last - first;
    part.before = begin - axis.start(first);
    part.after = axis.input - end + axis.after;
  }
  Window window;
  std::int64_t begin;
};

// The slices of the result for which what they read and write has room; 0 if one has none.
template <typename T>
std::int64_t NarrowSlices(const Window& window, const StripAxis& slices) {
  const WindowAxis& axis = window.axes[slices.along];
  const std::int64_t planes = kNarrowPlanes<T> * std::int64_t{sizeof(T)};
  const std::int64_t most = kNarrowBytes / Times(slices.input, planes);
  if (most < axis.input && most < axis.reach()) return 0;
  const std::int64_t by_input = most >= axis.input ? axis.output : (most - axis.reach()) / axis.stride + 1;
  return std::min({axis.output, by_input, kNarrowOutBytes / Times(slices.output, planes)});
}

template <typename T>
bool HasNarrowPlanes(TensorView x, const Window& window, PoolKind kind) {
  if (std::is_same_v<T, double> && kind == PoolKind::kLargest) return false;
  if (Times(x.dim(0), x.dim(1)) < kNarrowPlanes<T> / 2 || window.outputs() == 0 || window.inputs() == 0)
    return false;
  return window.axes[2].output <= kMostNarrowColumns && window.axes[2].before >= 0 &&
         IsListed(window, kNarrowPlanes<T>) && NarrowSlices<T>(window, StripAxis(window)) > 0;
}

// One strip of so many planes.
template <typename T>
class NarrowStrip {
 public:
  // Returns false if told to stop.
  bool Run(const PoolImages<T>& planes, const Window& whole, std::int64_t first, std::int64_t last,
           PoolKind kind, Pace& pace) {
    const StripAxis slices(whole);
    const WindowStrip strip(whole, slices.along, first, last);
    const WindowAxis &axis = strip.window.axes[slices.along], &columns = strip.window.axes[2];
    const std::int64_t count = planes.channels, read = axis.input * slices.input;
    const std::int64_t written = axis.output * slices.output;
    const auto transpose = std::get<TransposeBlock<Moved>>(BestBlockTransposes());
    transpose(reinterpret_cast<Moved*>(in_), count,
              reinterpret_cast<const Moved*>(planes.x + strip.begin * slices.input), whole.inputs(), read,
              count, false);
    Read(kind, Times(read, count));
    const PoolImages<T> image{in_, out_, count};
    for (std::int64_t line = 0; line < written / columns.output; ++line) {
      if (!pace.Spend(Times(columns.output, whole.taps(), count) / 4 + kPositionWork)) return false;
      PoolLine<T>(image, strip.window, line, kind).Run(0, columns.output);
    }
    if (kind == PoolKind::kRootOfSquares) TakeRoots(Times(written, count));
    transpose(reinterpret_cast<Moved*>(planes.out + first * slices.output), whole.outputs(),
              reinterpret_cast<const Moved*>(out_), count, count, written, false);
    return true;
  }

 private:
  using Moved = std::conditional_t<sizeof(T) == 8, std::uint64_t,
                                   std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint8_t>>;
  static_assert(sizeof(Moved) == sizeof(T));

  // Makes of the elements what the kind sums up.
  void Read(PoolKind kind, std::int64_t count) {
    if constexpr (std::is_floating_point_v<T>) {
      if (kind == PoolKind::kRootOfSquares) {
        WideLoop([=, x = &in_[0]] {
          for (std::int64_t i = 0; i < count; ++i) x[i] *= x[i];
        });
      } else if (kind == PoolKind::kSumOfMagnitudes) {
        WideLoop([=, x = &in_[0]] {
          for (std::int64_t i = 0; i < count; ++i) x[i] = std::fabs(x[i]);
        });
      }
    }
  }
  void TakeRoots(std::int64_t count) {
    if constexpr (std::is_floating_point_v<T>) {
      WideLoop([=, sums = &out_[0]] {
        for (std::int64_t i = 0; i < count; ++i) sums[i] = std::sqrt(sums[i]);
      });
    }
  }

  alignas(64) T in_[kNarrowBytes / sizeof(T)];
  alignas(64) T out_[kNarrowOutBytes / sizeof(T)];
};

template <typename T>
Status PoolNarrowPlanes(TensorView x, TensorView out, const Window& window, PoolKind kind) {
  const StripAxis slices(window);
  const std::int64_t planes = Times(x.dim(0), x.dim(1)), positions = window.axes[slices.along].output;
  const std::int64_t blocks = (planes + kNarrowPlanes<T> - 1) / kNarrowPlanes<T>;
  const std::int64_t at_once = NarrowSlices<T>(window, slices), strips = (positions + at_once - 1) / at_once;
  const std::int64_t work = Times(at_once, slices.output, Times(window.taps(), kNarrowPlanes<T>));
  return ParallelFor(Times(blocks, strips), GrainOf(4 * kGrain, work),
                     [&](std::int64_t begin, std::int64_t end, Pace& pace) {
                       NarrowStrip<T> strip;
                       for (std::int64_t i = begin; i < end; ++i) {
                         const std::int64_t plane = i / strips * kNarrowPlanes<T>,
                                            first = i % strips * at_once;
                         const PoolImages<T> of{x.data<T>() + plane * window.inputs(),
                                                out.data<T>() + plane * window.outputs(),
                                                std::min(kNarrowPlanes<T>, planes - plane)};
                         if (!strip.Run(of, window, first, std::min(positions, first + at_once), kind, pace))
                           return;
                       }
                     });
}

// Pools narrow planes so, others in strips, and windows that fit neither by `body` as ForEachWindow does.
template <typename T, typename Body>
Status PoolPlanes(TensorView x, TensorView out, const Window& window, PoolKind kind, const Body& body) {
  return HasNarrowPlanes<T>(x, window, kind) ? PoolNarrowPlanes<T>(x, out, window, kind)
                                             : Slide<T>(x, out, window, kind, body);
}

}  // namespace rewire::kernel::cpu
