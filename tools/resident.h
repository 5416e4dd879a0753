// SPDX-License-Identifier: Apache-2.0
// The physical memory of this process.
#pragma once

#include <cstdint>

namespace rewire::tools {

// In bytes, as the kernel counts: private pages and those of mapped files that are in. 0 where the system
// does not say (/proc/self/status).
struct Resident {
  std::uint64_t now = 0;
  std::uint64_t peak = 0;
};
Resident ResidentMemory();

}  // namespace rewire::tools
