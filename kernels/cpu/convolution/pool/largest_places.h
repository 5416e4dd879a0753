// SPDX-License-Identifier: Apache-2.0
// The largest elements under windows with the channels first, and where each lies. The windows of a line meet
// their taps side by side, so that compilers compare many at once.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "rewire/kernels/cpu/convolution/window.h"
#include "rewire/kernels/cpu/support/pace.h"
#include "rewire/kernels/cpu/support/wide_loop.h"

namespace rewire::kernel::cpu {

// The search of a plane, some windows of a line at a time.
template <typename T>
class LargestPlaces {
  // Bytes are kept in as many bits as places, so that vectors of both have equally many.
  using Kept = std::conditional_t<std::is_integral_v<T>, std::int32_t, T>;

 public:
  static constexpr std::int64_t kColumns = 256;  // that are found together
  static constexpr std::int64_t kMostTaps = 64;  // in a row of the window

  // Whether the places fit the bits that they are kept in, and a line is no long work.
  static bool Can(const Window& window) {
    return window.inputs() <= std::numeric_limits<std::int32_t>::max() &&
           window.axes[2].kernel <= kMostTaps && Times(window.taps(), kColumns) <= 16 * kPace;
  }

  explicit LargestPlaces(const Window& window) : window_(window) {
    for (std::int64_t k = 0; k < window.axes[2].kernel; ++k) window.axes[2].Reached(k, &first_[k], &last_[k]);
  }

  // Windows [begin, end) of each of some lines of a plane, at most kColumns in all.
  struct Windows {
    const T* plane;
    std::int64_t line, lines;
    std::int64_t begin, end;
  };
  // Finds the largest elements. is_larger(most, value) says whether a later element takes the place of the
  // largest before it; the first one always is, and `least` is that of no elements.
  template <typename IsLarger>
  void Find(const Windows& of, T least, const IsLarger& is_larger) {
    const std::int64_t count = of.lines * (of.end - of.begin);
    std::fill_n(most_, count, least);
    std::fill_n(places_, count, -1);
    WideLoop([of, this, &is_larger] {
      for (std::int64_t line = 0; line < of.lines; ++line) MeetLine(of, line, is_larger);
    });
  }
  // The largest of window i of those found.
  T most(std::int64_t i) const { return static_cast<T>(most_[i]); }
  // Its place in the plane; -1 if the window covers nothing.
  std::int64_t place(std::int64_t i) const { return places_[i]; }

 private:
  struct Row {
    const T* plane;
    std::int64_t start;  // of the first window in the plane
    std::int64_t begin, end;
    std::int64_t found;  // of the windows before
  };

  template <typename IsLarger>
  void MeetLine(const Windows& of, std::int64_t number, const IsLarger& is_larger) {
    const auto& [depth, rows, columns] = window_.axes;
    const std::int64_t oz = (of.line + number) / rows.output, oy = (of.line + number) % rows.output;
    std::int64_t z0, z1, y0, y1;
    depth.Inside(oz, &z0, &z1);
    rows.Inside(oy, &y0, &y1);
    for (std::int64_t i = z0; i < z1; ++i) {
      const std::int64_t z = depth.start(oz) + i * depth.dilation;
      for (std::int64_t j = y0; j < y1; ++j) {
        const std::int64_t y = rows.start(oy) + j * rows.dilation;
        const std::int64_t start = (z * rows.input + y) * columns.input - columns.before;
        MeetRow(Row{of.plane, start, of.begin, of.end, number * (of.end - of.begin)}, is_larger);
      }
    }
  }

  template <typename IsLarger>
  void MeetRow(const Row& row, const IsLarger& is_larger) {
    const std::int64_t stride = window_.axes[2].stride;
    for (std::int64_t k = 0; k < window_.axes[2].kernel; ++k) {
      const std::int64_t first = std::max(first_[k], row.begin), last = std::min(last_[k], row.end);
      if (first >= last) continue;
      const std::int64_t at = row.start + first * stride + k * window_.axes[2].dilation;
      const Taps taps{row.plane + at,
                      static_cast<std::int32_t>(at),
                      static_cast<std::int32_t>(stride),
                      static_cast<std::int32_t>(last - first),
                      most_ + row.found + (first - row.begin),
                      places_ + row.found + (first - row.begin)};
      if (stride == 1)
        Meet<1>(taps, is_larger);
      else if (stride == 2)
        Meet<2>(taps, is_larger);
      else
        Meet<0>(taps, is_larger);
    }
  }

  // A tap of windows that lie side by side.
  struct Taps {
    const T* from;
    std::int32_t at, stride, count;
    Kept* most;
    std::int32_t* places;
  };
  // kStride 0 stands for any.
  template <std::int32_t kStride, typename IsLarger>
  static void Meet(const Taps taps, const IsLarger& is_larger) {
    const std::int32_t stride = kStride == 0 ? taps.stride : kStride, count = taps.count, at = taps.at;
    const T* __restrict from = taps.from;
    Kept* __restrict most = taps.most;
    std::int32_t* __restrict places = taps.places;
    // A choice by bits: of one by a condition, compilers make branches around the stores.
    for (std::int32_t i = 0; i < count; ++i) {
      const auto value = static_cast<Kept>(from[i * stride]);
      const Kept before = most[i];
      const std::int32_t place = places[i];
      const std::int32_t takes = -static_cast<std::int32_t>((place < 0) | is_larger(before, value));
      places[i] = ((at + i * stride) & takes) | (place & ~takes);
      if constexpr (std::is_integral_v<Kept>)
        most[i] = (value & takes) | (before & ~takes);
      else
        most[i] = takes != 0 ? value : before;
    }
  }

  const Window& window_;
  Kept most_[kColumns];
  std::int32_t places_[kColumns];
  std::int64_t first_[kMostTaps], last_[kMostTaps];  // the windows that have a tap on the line
};

}  // namespace rewire::kernel::cpu
