// SPDX-License-Identifier: Apache-2.0
//
// WeightUses: the parts of weights that the nodes of a plan use, and how many bytes these are.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "rewire/compiler/ir/graph.h"
#include "rewire/compiler/shard/rule.h"
#include "rewire/compiler/shard/weights.h"

namespace rewire::compiler {

// The bytes of weights: in all, and on one rank.
struct SplitBytes {
  std::uint64_t whole = 0, part = 0;
};
// Counts a node's weights of two axes and more. A null rule: the node needs them whole.
SplitBytes SplitBytesOf(const Graph& graph, const Node& node, const Rule* rule, std::int64_t ranks);
// The bytes of weights that a call reads: some rows of a table, and of a stack what is taken out.
std::uint64_t BytesReadBy(const Graph& graph, const Node& node);

class WeightUses {
 public:
  WeightUses(const Graph& graph, std::int64_t ranks) : graph_(&graph), ranks_(ranks) {}

  // Notes the weights of two axes and more that the node uses. A null rule: it needs them whole.
  void Add(const Node& node, const Rule* rule);

  struct Use {
    const Node* node = nullptr;
    Sharding sharding;
  };
  const std::vector<Use>& Of(const Value* constant) const { return of_constants_.at(constant); }
  // The parts of constants that the node uses.
  std::vector<ConstantPart> By(const Node& node) const;
  // True if all that use the node's constants use the same part of them.
  bool AreCutOnce(const Node& node) const;
  // A rank has each part of the constant that something uses.
  std::uint64_t BytesHeld(const Value& constant) const;

 private:
  // The different ones.
  std::vector<Sharding> ShardingsOf(const Value* constant) const;

  const Graph* graph_;
  std::int64_t ranks_;
  std::unordered_map<const Value*, std::vector<Use>> of_constants_;
  std::unordered_map<const Node*, std::vector<ConstantPart>> by_nodes_;
};

}  // namespace rewire::compiler
