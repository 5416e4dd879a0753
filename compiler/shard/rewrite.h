// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "rewire/compiler/ir/graph.h"
#include "rewire/compiler/shard/plan.h"

namespace rewire::compiler {

// Makes the graph the program of one rank: weights become its parts, sizes those of its parts, and
// collectives stand where something needs the whole of a split value. All ranks make the same calls in the
// same order.
void RewriteForRank(Graph* graph, const ShardPlan& plan, std::int64_t rank);

}  // namespace rewire::compiler
