// SPDX-License-Identifier: Apache-2.0
// What one invocation may use at most.
#pragma once

#include <cstdint>
#include <limits>

namespace rewire {

struct Limits {
  std::uint32_t depth = 1u << 14;                                   // active calls
  std::uint64_t steps = std::numeric_limits<std::uint64_t>::max();  // instructions
  // Bytes of the VM's memory from its allocator: objects, storage, stack and what its free lists keep.
  // Results that the host still holds count until they are released.
  std::uint64_t bytes = std::numeric_limits<std::uint64_t>::max();
};

}  // namespace rewire
