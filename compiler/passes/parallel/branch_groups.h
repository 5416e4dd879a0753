// SPDX-License-Identifier: Apache-2.0
//
// Chooses the nodes of a block that are worth running in branches at once.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "rewire/compiler/ir/graph.h"

namespace rewire::compiler {

// Consecutive nodes [begin, end) of a block. Nodes of different branches do not depend on each other.
struct BranchGroup {
  std::size_t begin = 0, end = 0;
  std::vector<std::size_t> branch;  // of each node
  std::size_t branches = 0;
  double time = 0;  // nanoseconds on one thread
};

// The groups that save most time on two threads, first ones first; they do not overlap. `time` tells the
// nanoseconds of a node on one thread; a node without a time is in no group.
std::vector<BranchGroup> FindBranchGroups(const Block& block,
                                          const std::function<std::optional<double>(const Node&)>& time);

}  // namespace rewire::compiler
