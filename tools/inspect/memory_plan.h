// SPDX-License-Identifier: Apache-2.0
// vm-inspect --memory --svg: where the tensors of a function lie, as far as the code alone tells it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rewire/executable_format/module.h"

namespace rewire::tools {

// A piece of memory and how long it is used.
struct MemoryBlock {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  bool is_storage = false;  // it holds tensors; otherwise it is one of them
  // Instructions, counted from 0: the first that finds it, and the first that does not.
  std::uint32_t from = 0, to = 0;
  std::string name;  // "%y f32[2, 3]"; "%y" for a storage and for what lies in a tree
};

struct MemoryPlan {
  std::string unknown;              // why there is no plan, naming function and instruction; else empty
  std::vector<MemoryBlock> blocks;  // addresses from 0 on, each storage as low as it can lie
  std::uint32_t steps = 0;          // instructions
  std::uint64_t height = 0;  // the highest address, and so the most that storages take at once, or more
};

// Follows the code of a function without branches, loops or calls whose sizes are numbers in the file. Other
// functions have no plan: what they take is known when they run. `module` passed the verifier.
MemoryPlan PlanOf(const Module& module, std::uint32_t function);

}  // namespace rewire::tools
