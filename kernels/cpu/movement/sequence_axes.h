// SPDX-License-Identifier: Apache-2.0
//
// The attributes of kernels of the CPU and of devices that reverse sequences.
#pragma once

#include <cstdint>

#include "rewire/kernels/cpu/support/checks.h"
#include "rewire/vm/kernel/attributes.h"

namespace rewire::kernel::cpu {

// The first two axes: which one counts sequences, and which one the steps in them.
struct SequenceAxes {
  std::int64_t batch_axis = 1;
  std::int64_t time_axis = 0;

  static Status Make(Attributes& attributes, SequenceAxes* axes) {
    axes->batch_axis = attributes.Int("batch_axis", 1, 0, 1);
    axes->time_axis = attributes.Int("time_axis", 0, 0, 1);
    if (axes->batch_axis == axes->time_axis)
      return ValueError("attributes 'batch_axis' and 'time_axis' are both ", axes->batch_axis);
    return Status();
  }
};

}  // namespace rewire::kernel::cpu
