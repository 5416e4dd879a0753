// SPDX-License-Identifier: Apache-2.0
// Rows of 16-bit floats (IEEE 754 binary16) to floats and back, by the CPU's instructions where it has them.
#pragma once

#include <cstdint>

#include "rewire/kernels/cpu/support/half.h"

namespace rewire::kernel::cpu {

// The results are those of Float16's own conversions, to the bit.
struct HalfRows {
  void (*widen)(const Float16* in, float* out, std::int64_t count);
  void (*narrow)(const float* in, Float16* out, std::int64_t count);
};

// The functions for the best instruction set that this CPU and the build support.
HalfRows ChooseHalfRows();

// The same, chosen once per process.
inline const HalfRows& BestHalfRows() {
  static const HalfRows kBest = ChooseHalfRows();
  return kBest;
}

}  // namespace rewire::kernel::cpu
