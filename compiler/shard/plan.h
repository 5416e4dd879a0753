// SPDX-License-Identifier: Apache-2.0
//
// ShardPlan: how the values of a graph lie on the ranks, and how each node computes there.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "rewire/compiler/compiler.h"
#include "rewire/compiler/ir/graph.h"
#include "rewire/compiler/shard/rule.h"
#include "rewire/compiler/shard/sharding.h"

namespace rewire::compiler {

struct ShardPlan {
  std::int64_t ranks = 1;
  // Nodes that do not compute what the whole program's do. All others need whole inputs and give whole
  // outputs.
  std::unordered_map<const Node*, Rule> rules;
  // Values that are not whole. Parameters of `main` among them are split inputs.
  std::unordered_map<const Value*, Sharding> shardings;
  // Results of `main` that stay split: caches whose inputs are split.
  std::unordered_map<const Value*, Sharding> split_results;
  ShardReport report;

  Sharding Of(const Value* value) const;
};

// Splits what pays, or all that can be split. The graph has no dead nodes.
//
// The walk goes through the nodes in order. A product by weights begins a split by their columns or groups.
// The rules of what follows carry it on as far as they can. It ends at a product that sums over the split
// axis, or at a node that needs the whole. What hangs together in this way is split or left whole as one, by
// the time that it saves and the time that its exchanges take.
ShardPlan PlanShards(const Graph& graph, std::int64_t ranks, ShardGoal goal);

}  // namespace rewire::compiler
