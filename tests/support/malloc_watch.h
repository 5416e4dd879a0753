// SPDX-License-Identifier: Apache-2.0
// Counts this thread's calls of malloc and its like, while told to. Those of oneDNN are not counted: it makes
// a table of arguments in each call, and nothing can be done about that.
#pragma once

#include <cstdint>

namespace rewire::test {

// False where a sanitizer has an allocator of its own: nothing is counted then.
bool MallocIsWatched();
void StartMallocWatch();
// The calls since the start.
std::uint64_t StopMallocWatch();

}  // namespace rewire::test
