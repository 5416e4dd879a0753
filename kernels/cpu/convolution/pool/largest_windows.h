// SPDX-License-Identifier: Apache-2.0
// The largest numbers and the means under windows that lie side by side, channels last: the innermost loops
// of pools.
#pragma once

#include <cstdint>

namespace rewire::kernel::cpu {

// out[o * channels + c] = the largest of rows[r][o * stride + t * distance + c] for r < row_count, t < taps,
// where o < count and c < channels. It is NaN if one is NaN, and -inf or the least integer if there are none.
// T is float, std::uint8_t or std::int8_t, or std::uint16_t, which are the bits of bf16.
template <typename T>
struct WindowsInRow {
  std::int64_t channels;
  std::int64_t count;      // output positions
  std::int64_t stride;     // elements from one position's window to the next one's
  std::int64_t taps;       // in a row of the window
  std::int64_t distance;   // elements from one of them to the next
  std::int64_t row_count;  // rows of the window
  const T* const* rows;    // where position 0 begins
  T* out;
  T divisor = {};  // of means
};

//
// A kernel of means adds these numbers in the order of r and t and divides by `divisor`. The result is 0 if
// that is 0. T is float or double.
template <typename T>
using WindowsKernel = void (*)(const WindowsInRow<T>& windows);

// For the best instruction set that this CPU and the build support.
template <typename T>
WindowsKernel<T> ChooseLargestWindowsKernel();
// The same, chosen once per process.
template <typename T>
WindowsKernel<T> BestLargestWindowsKernel() {
  static const WindowsKernel<T> kBest = ChooseLargestWindowsKernel<T>();
  return kBest;
}

template <typename T>
WindowsKernel<T> ChooseMeanWindowsKernel();
template <typename T>
WindowsKernel<T> BestMeanWindowsKernel() {
  static const WindowsKernel<T> kBest = ChooseMeanWindowsKernel<T>();
  return kBest;
}

}  // namespace rewire::kernel::cpu
