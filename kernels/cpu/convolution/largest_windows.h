// SPDX-License-Identifier: Apache-2.0
// The largest floats under windows that lie side by side, channels last: the innermost loop of max pools.
#pragma once

#include <cstdint>

namespace rewire::kernel::cpu {

// out[o * channels + c] = the largest of rows[r][o * stride + t * distance + c] for r < row_count, t < taps;
// NaN if one is NaN, -inf if there are none; o < count, c < channels.
struct WindowsInRow {
  std::int64_t channels;
  std::int64_t count;        // output positions
  std::int64_t stride;       // floats from one position's window to the next one's
  std::int64_t taps;         // in a row of the window
  std::int64_t distance;     // floats from one of them to the next
  std::int64_t row_count;    // rows of the window
  const float* const* rows;  // where position 0 begins
  float* out;
};

using LargestWindowsKernel = void (*)(const WindowsInRow& windows);

// For the best instruction set that this CPU and the build support.
LargestWindowsKernel ChooseLargestWindowsKernel();
// The same, chosen once per process.
LargestWindowsKernel BestLargestWindowsKernel();

}  // namespace rewire::kernel::cpu
