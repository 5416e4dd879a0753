// SPDX-License-Identifier: Apache-2.0
// The memory that the process holds, by its allocator and by its kernel.
#pragma once

#include <cstdint>

namespace rewire::test {

// False where a sanitizer has an allocator of its own: what StopCounting gives is 0 then.
bool AllocationsAreCounted();
// From now on, what is allocated counts; what was allocated before is not part of it.
void StartCounting();
// Ends the counting. The most that was allocated at once since then, and what still is.
struct Allocations {
  std::int64_t most = 0, left = 0;
};
Allocations StopCounting();

// The bytes of memory that the process has, and the most that it had since the last reset.
std::int64_t Resident();
std::int64_t MostResident();
void ResetMostResident();

}  // namespace rewire::test
