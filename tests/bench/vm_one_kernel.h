// SPDX-License-Identifier: Apache-2.0
// The smallest model: one kernel makes one tensor of another. What a run costs around its instructions.
#pragma once

#include "rewire/vm/program.h"

namespace rewire::bench {

// Function "main" takes "x", f32[4], and returns "y", f32[4].
Program OneKernel();

// The vectors that one thread reads and writes, on cache lines of its own.
struct alignas(64) Vectors {
  float x[4] = {1, 2, 3, 4};
  alignas(64) float y[4] = {};
};

}  // namespace rewire::bench
