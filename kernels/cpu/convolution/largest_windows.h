// SPDX-License-Identifier: Apache-2.0
// The largest numbers under windows that lie side by side, channels last: the innermost loop of max pools.
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
};

template <typename T>
using LargestWindowsKernel = void (*)(const WindowsInRow<T>& windows);

// For the best instruction set that this CPU and the build support.
template <typename T>
LargestWindowsKernel<T> ChooseLargestWindowsKernel();
// The same, chosen once per process.
template <typename T>
LargestWindowsKernel<T> BestLargestWindowsKernel() {
  static const LargestWindowsKernel<T> kBest = ChooseLargestWindowsKernel<T>();
  return kBest;
}

}  // namespace rewire::kernel::cpu
