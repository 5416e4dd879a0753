// SPDX-License-Identifier: Apache-2.0
// Pools of images with the channels first, in vectors of output positions that lie side by side.
//
// A strip of the image is kept in a few kilobytes: its lines, padded, and split by the stride so that a tap
// of neighboring outputs is one vector. The largest element is found along lines first and then across them,
// which makes windows of all sizes nearly equally dear. Sums add the taps of a window in its own order, so
// that they are the bits of a loop over the window.
#pragma once

#include <algorithm>
#include <cstdint>

#include "rewire/kernels/cpu/convolution/window.h"
#include "rewire/kernels/cpu/support/pace.h"

namespace rewire::kernel::cpu {

// A pool's kind says what it makes of the elements under a window.
enum class PoolKind { kLargest, kMean, kMeanWithPads, kSumOfMagnitudes, kRootOfSquares };

// How many positions of an axis the window at output `o` covers: on the image, or also on the pads, which
// ceil_mode may reach past.
inline std::int64_t CoveredBy(const WindowAxis& axis, std::int64_t o, bool with_pads) {
  if (with_pads) {
    const std::int64_t room = axis.input + axis.before + axis.after - o * axis.stride;
    return std::min(axis.kernel, (room - 1) / axis.dilation + 1);
  }
  std::int64_t first, last;
  axis.Inside(o, &first, &last);
  return std::max<std::int64_t>(0, last - first);
}

// Output lines [first, last) of the lines of a plane, counted over the two outer axes.
template <typename T>
struct PoolLines {
  const Window& window;
  const T* plane;
  T* out;  // of the plane
  std::int64_t first;
  std::int64_t last;
};

// Returns false if the largest is asked for and the lines have a NaN, because the order of several decides
// which one is the result. Then `out` has nothing of value. Returns true if told to stop.
template <typename T>
using SlideKernel = bool (*)(const PoolLines<T>& lines, Pace& pace);

// Whether windows of this shape fit the strips.
template <typename T>
bool CanSlide(const Window& window);

// For the best instruction set that this CPU and the build support. Of float and double, and kLargest also of
// std::uint8_t and std::int8_t.
template <typename T>
SlideKernel<T> ChooseSlideKernel(PoolKind kind);

}  // namespace rewire::kernel::cpu
