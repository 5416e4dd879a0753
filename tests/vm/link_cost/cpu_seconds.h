// SPDX-License-Identifier: Apache-2.0
// The CPU time of this process, which load of the machine does not lengthen as it does time.
#pragma once

#include <time.h>

namespace rewire::test {

inline double CpuSeconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace rewire::test
