// SPDX-License-Identifier: Apache-2.0
// Measures what this machine can do, for comparing kernels with it.
#pragma once

#include <cstdint>
#include <string>

namespace rewire::tools {

struct CpuSpeed {
  std::string name;  // as /proc/cpuinfo has it; may be empty
  std::uint32_t threads = 1;
  double operations = 0;  // a second: the stock kernel's product of two f32 matrices of 768 x 768
  double bytes = 0;       // a second: read and written by copies of memory that no cache holds
};

// Takes some 0.2 s. `threads`: 0 for one per core. Where the stock kernels are not there or memory is short,
// the operations are 0.
CpuSpeed MeasureCpu(std::int32_t threads);

}  // namespace rewire::tools
