// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "rewire/tools/inspect/inspect_memory.h"
#include "rewire/tools/inspect/memory_plan.h"

namespace rewire::tools {

struct PlannedFunction {
  std::string name;
  MemoryPlan plan;
  MemoryBound bound;  // no output is bound
};

// A picture of the functions, one below the other: instructions from left to right, bytes upwards. It can be
// read on a light and on a dark page, and shows names and sizes under the pointer.
std::string MemorySvg(const std::vector<PlannedFunction>& functions);

}  // namespace rewire::tools
