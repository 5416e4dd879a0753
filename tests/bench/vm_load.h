// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "rewire/tests/bench/vm_cases.h"

namespace rewire::bench {

struct Residency {
  std::size_t resident = 0;  // pages of the constant in this process's memory
  std::size_t pages = 0;     // of the constant
};

// Opens a file with a 64 MiB constant and looks which of its pages that has brought in. The kernel maps
// cached pages around the ones that are read, 16 at most, so a few may be the neighbors of the headers.
Residency MeasureResidency();

}  // namespace rewire::bench
