// SPDX-License-Identifier: Apache-2.0
// Physical memory: of this process, and of the machine.
#pragma once

#include <cstdint>

#include "rewire/base/status.h"

namespace rewire::tools {

// In bytes, as the kernel counts it: private pages, and pages of mapped files that are in memory. 0 if the
// system does not say (/proc/self/status).
struct Resident {
  std::uint64_t now = 0;
  std::uint64_t peak = 0;
};
Resident ResidentMemory();

// Fails with kOutOfMemory if the machine has less memory than `bytes`, the size of a tensor made of numbers.
// Allocating it anyway may succeed, but the system may end the process when it uses the memory.
Status CheckMachineHas(std::uint64_t bytes);

}  // namespace rewire::tools
