// SPDX-License-Identifier: Apache-2.0
// Functions of two rows of floats, with the vectors of the CPU that the process runs on.
#pragma once

#include <cstdint>

namespace rewire::kernel::cpu {

// Each takes any floats, including NaN and infinities, as the standard library's function does. `out` may be
// `a` or `b`.
struct PairMath {
  using Row = void (*)(const float* a, const float* b, float* out, std::int64_t count);
  Row fmod;  // exact
  Row pow;   // within half a unit in the last place, and a millionth of one
};

// The functions for the best instruction set that this CPU and the build support.
PairMath ChoosePairMath();

// The same, chosen once per process.
const PairMath& BestPairMath();

}  // namespace rewire::kernel::cpu
