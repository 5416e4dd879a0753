// SPDX-License-Identifier: Apache-2.0
// The largest of several rows, element by element: the innermost loop of max pools with the
// channels last.
#pragma once

#include <cstdint>

namespace rewire::kernel::cpu {

// out[c] = the largest of rows[i][c] for i < count, NaN if one is NaN, the lowest value if there are none; c
// < channels.
template <typename T>
using LargestRowsKernel = void (*)(const T* const* rows, std::int64_t count, std::int64_t channels, T* out);

// For the best instruction set that this CPU and the build support; of float, std::uint8_t and std::int8_t.
template <typename T>
LargestRowsKernel<T> ChooseLargestRowsKernel();
// The same, chosen once per process.
template <typename T>
LargestRowsKernel<T> BestLargestRowsKernel() {
  static const LargestRowsKernel<T> kBest = ChooseLargestRowsKernel<T>();
  return kBest;
}

}  // namespace rewire::kernel::cpu
