// SPDX-License-Identifier: Apache-2.0
// Says in words what the times and outputs of a run suggest, and what to do.
#pragma once

#include <string>
#include <vector>

#include "rewire/tools/report/run_facts.h"

namespace rewire::tools {

struct Advice {
  double share = 0;    // of the time of the runs that it is about, 0 to 1; 0 if it is about no time
  std::string text;    // what was seen, in a sentence
  std::string action;  // what to do about it; empty if nothing can be done
};

// The largest share first. Empty if nothing stands out.
std::vector<Advice> AdviceOn(const RunFacts& facts, const Profiler& profiler);

}  // namespace rewire::tools
