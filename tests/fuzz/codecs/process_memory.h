// SPDX-License-Identifier: Apache-2.0
// What the process holds, by its allocator and by its kernel.
#pragma once

#include <cstdint>

namespace rewire::test {

// False where a sanitizer has an allocator of its own: MostAllocated is 0 then.
bool AllocationsAreCounted();
// From now on, what is allocated counts; what was allocated before is not part of it.
void StartCounting();
// The most that was allocated at once since then. Ends the counting.
std::int64_t MostAllocated();

// While one exists, what this thread allocates does not count: it is the host's.
class NotCounted {
 public:
  NotCounted();
  ~NotCounted();
  NotCounted(const NotCounted&) = delete;
  NotCounted& operator=(const NotCounted&) = delete;

 private:
  bool was_counting_;
};

// The bytes of memory that the process has, and the most that it had since the last reset.
std::int64_t Resident();
std::int64_t MostResident();
void ResetMostResident();

}  // namespace rewire::test
