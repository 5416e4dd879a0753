// SPDX-License-Identifier: Apache-2.0
// The largest of many elements, where NaN is larger than nothing.
#pragma once

#include <algorithm>
#include <cstdint>

#include "rewire/kernels/cpu/support/wide_loop.h"

namespace rewire::kernel::cpu {

// The largest of `most` and the elements of a line. NaN is larger than nothing, and nothing is larger than
// it.
template <typename T>
T LargestAbove(T most, const T* line, std::int64_t count) {
  constexpr std::int64_t kSide = 16;
  std::int64_t i = 0;
  if (count >= kSide) {
    i = count - count % kSide;
    WideLoop([line, end = i, &most] {
      T lanes[kSide], best = most;
      std::fill_n(lanes, kSide, most);
      for (std::int64_t first = 0; first < end; first += kSide) {
        for (std::int64_t k = 0; k < kSide; ++k)
          lanes[k] = line[first + k] > lanes[k] ? line[first + k] : lanes[k];
      }
      for (T lane : lanes) best = lane > best ? lane : best;
      most = best;
    });
  }
  for (; i < count; ++i) most = line[i] > most ? line[i] : most;
  return most;
}

}  // namespace rewire::kernel::cpu
