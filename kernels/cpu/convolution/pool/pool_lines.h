// SPDX-License-Identifier: Apache-2.0
// Pools with the channels last, a row of the result at a time: vectors go over channels.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <type_traits>

#include "rewire/kernels/cpu/convolution/pool/largest_windows.h"
#include "rewire/kernels/cpu/convolution/pool/pool_channels_last.h"
#include "rewire/kernels/cpu/convolution/pool/sliding_windows.h"
#include "rewire/kernels/cpu/convolution/window.h"
#include "rewire/kernels/cpu/support/parallel.h"
#include "rewire/kernels/cpu/support/types.h"

namespace rewire::kernel::cpu {

// The most rows of a window, and the most work of one, for which PoolLine is made.
inline constexpr std::int64_t kMostRows = 64;

// Elements as WindowsKernel has them.
template <typename T>
using Listed = std::conditional_t<std::is_same_v<T, BFloat16>, std::uint16_t, T>;

inline bool IsListed(const Window& window, std::int64_t channels) {
  return Times(window.axes[0].kernel, window.axes[1].kernel) <= kMostRows &&
         Times(window.taps(), channels) <= kPace;
}

// Images [N, spatial..., channels] and their results.
template <typename T>
struct PoolImages {
  const Listed<T>* x;
  Listed<T>* out;
  std::int64_t channels;
};

// One row of the result of a pool with the channels last. Kinds that sum up magnitudes or squares sum up the
// elements as they are.
template <typename T>
class PoolLine {
 public:
  PoolLine(const PoolImages<T>& images, const Window& window, std::int64_t line, PoolKind kind)
      : columns_(window.axes[2]), channels_(images.channels), kind_(kind) {
    const auto& [depth, rows, columns] = window.axes;
    const std::int64_t oy = line % rows.output, oz = line / rows.output % depth.output;
    const std::int64_t image = line / rows.output / depth.output;
    out_ = images.out + line * columns.output * channels_;
    std::int64_t z0, z1, y0, y1;
    depth.Inside(oz, &z0, &z1);
    rows.Inside(oy, &y0, &y1);
    const bool pads = kind == PoolKind::kMeanWithPads;
    outer_count_ = Times(CoveredBy(depth, oz, pads), CoveredBy(rows, oy, pads));
    for (std::int64_t i = z0; i < z1; ++i) {
      const std::int64_t z = depth.start(oz) + i * depth.dilation;
      for (std::int64_t j = y0; j < y1; ++j) {
        const std::int64_t y = rows.start(oy) + j * rows.dilation;
        lines_[row_count_++] =
            images.x + ((image * depth.input + z) * rows.input + y) * columns.input * channels_;
      }
    }
  }

  // Positions whose windows lie inside the columns are run together, those at the borders one by one.
  void Run(std::int64_t begin, std::int64_t end) const {
    const std::int64_t inside = (columns_.input - columns_.reach() + columns_.before) / columns_.stride + 1;
    for (std::int64_t o = begin; o < end;) {
      std::int64_t first, last;
      columns_.Inside(o, &first, &last);
      const bool whole = first == 0 && last == columns_.kernel;
      const std::int64_t count = whole ? std::min(end, inside) - o : 1;
      RunPart(o, count, first, std::max(first, last));
      o += count;
    }
  }

 private:
  // `count` positions from `position` on, by taps [first, last).
  void RunPart(std::int64_t position, std::int64_t count, std::int64_t first, std::int64_t last) const {
    const Listed<T>* from[kMostRows];
    const std::int64_t start = (columns_.start(position) + first * columns_.dilation) * channels_;
    const std::int64_t row_count = first < last ? row_count_ : 0;
    for (std::int64_t r = 0; r < row_count; ++r) from[r] = lines_[r] + start;
    WindowsInRow<Listed<T>> windows{
        channels_, count, columns_.stride * channels_, last - first, columns_.dilation * channels_,
        row_count, from,  out_ + position * channels_};
    if constexpr (std::is_floating_point_v<T>) {
      if (kind_ != PoolKind::kLargest) {
        const bool is_mean = kind_ == PoolKind::kMean || kind_ == PoolKind::kMeanWithPads;
        const std::int64_t covered = CoveredBy(columns_, position, kind_ == PoolKind::kMeanWithPads);
        windows.divisor = is_mean ? static_cast<T>(Times(outer_count_, covered)) : T{1};
        return BestMeanWindowsKernel<T>()(windows);
      }
    }
    if constexpr (!std::is_same_v<T, double>) {
      if (IsWorthColumns(windows)) return RunByColumns(windows);
      BestLargestWindowsKernel<Listed<T>>()(windows);
    }
  }

  // Whether windows share so many columns that the largest elements of those are found first.
  static constexpr std::int64_t kColumnBytes = 16384;
  bool IsWorthColumns(const WindowsInRow<Listed<T>>& windows) const {
    const std::int64_t apart = windows.row_count * windows.taps;
    const std::int64_t shared = windows.row_count * columns_.stride + windows.taps;
    return windows.count >= 4 && apart >= 12 && 2 * shared <= apart && windows.distance == channels_ &&
           (4 * columns_.stride + windows.taps) * channels_ * std::int64_t{sizeof(T)} <= kColumnBytes;
  }
  // The largest of each column and then of those under each window. The columns of several windows are kept.
  [[gnu::noinline]] static void RunByColumns(WindowsInRow<Listed<T>> windows) {
    alignas(64) Listed<T> largest[kColumnBytes / sizeof(T)];
    const Listed<T>* rows[kMostRows];
    std::copy_n(windows.rows, windows.row_count, rows);
    const Listed<T>* const of_columns[] = {largest};
    const std::int64_t stride = windows.stride, channels = windows.channels;
    const std::int64_t reach = windows.taps * channels;
    const std::int64_t at_once = (std::ssize(largest) - reach) / stride + 1;
    for (std::int64_t left = windows.count; left > 0; left -= at_once) {
      const std::int64_t count = std::min(left, at_once);
      // All columns and channels as the channels of one position.
      BestLargestWindowsKernel<Listed<T>>()(
          {(count - 1) * stride + reach, 1, 0, 1, 0, windows.row_count, rows, largest});
      BestLargestWindowsKernel<Listed<T>>()(
          {channels, count, stride, windows.taps, channels, 1, of_columns, windows.out});
      for (std::int64_t r = 0; r < windows.row_count; ++r) rows[r] += count * stride;
      windows.out += count * channels;
    }
  }

  const WindowAxis& columns_;
  std::int64_t channels_;
  PoolKind kind_;
  std::int64_t outer_count_;  // positions of the two outer axes that the windows cover
  Listed<T>* out_;
  std::int64_t row_count_ = 0;  // that lie in the image
  const Listed<T>* lines_[kMostRows];
};

template <typename T>
Status PoolLinesChannelsLast(TensorView x, TensorView out, const Window& window, PoolKind kind) {
  const std::int64_t lines = Times(x.dim(0), window.axes[0].output, window.axes[1].output);
  const std::int64_t columns = window.axes[2].output;
  const PoolImages<T> images{static_cast<const Listed<T>*>(x.raw_data()),
                             static_cast<Listed<T>*>(out.raw_data()), x.dim(x.ndim() - 1)};
  const std::int64_t work = Times(window.taps(), images.channels);  // eight elements are one operation
  return ParallelFor(lines, GrainOf(8 * kGrain, columns, Plus(8 * kPositionWork, work)),
                     [&](std::int64_t begin, std::int64_t end, Pace& pace) {
                       for (std::int64_t line = begin; line < end; ++line) {
                         const PoolLine<T> of(images, window, line, kind);
                         const auto run = [&](std::int64_t o, std::int64_t last) { of.Run(o, last); };
                         if (!pace.For(columns, 1 + work / 8, run)) return;
                       }
                     });
}

}  // namespace rewire::kernel::cpu
