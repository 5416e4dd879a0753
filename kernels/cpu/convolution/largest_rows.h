// SPDX-License-Identifier: Apache-2.0
// The largest of several rows of floats, element by element: the innermost loop of max pools with the
// channels last.
#pragma once

#include <cstdint>

namespace rewire::kernel::cpu {

// out[c] = the largest of rows[i][c] for i < count, NaN if one is NaN, -inf if there are none; c < channels.
using LargestRowsKernel = void (*)(const float* const* rows, std::int64_t count, std::int64_t channels,
                                   float* out);

// For the best instruction set that this CPU and the build support.
LargestRowsKernel ChooseLargestRowsKernel();
// The same, chosen once per process.
LargestRowsKernel BestLargestRowsKernel();

}  // namespace rewire::kernel::cpu
