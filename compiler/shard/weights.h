// SPDX-License-Identifier: Apache-2.0
//
// A rank's part of weights: of constants, and of what a model computes of constants alone, as of those that
// it stores in 8 bits.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "rewire/compiler/ir/graph.h"
#include "rewire/compiler/shard/sharding.h"

namespace rewire::compiler {

// True for a constant whose elements are known, and for what elementwise operators, conversions, transposes
// and reshapes make of such alone. Also for those of a stack of weights that are taken by their positions, as
// an expert's are in a loop over experts.
bool IsWeight(const Graph& graph, const Value& value);
// The positions by which a weight is taken out of stacks.
std::vector<const Value*> PositionsOf(const Value& weight);
// The bytes of the constants in it, as the model has them.
std::uint64_t BytesOfWeight(const Value& value);
// The same of a rank's part.
std::uint64_t BytesOfPart(const Graph& graph, const Value& value, const Sharding& sharding,
                          std::int64_t ranks);
// A part of a constant.
struct ConstantPart {
  const Value* constant = nullptr;
  Sharding sharding;
};
// The parts of the constants that this part of a weight is made of.
std::vector<ConstantPart> PartsOfConstants(const Graph& graph, const Value& value, const Sharding& sharding,
                                           std::int64_t ranks);
// Whether the parts of a weight are made of parts of its constants.
bool CanCutWeight(const Graph& graph, const Value& value, const Sharding& sharding, std::int64_t ranks);

// Makes parts of weights for one rank.
class WeightCutter {
 public:
  WeightCutter(Graph* graph, std::int64_t ranks, std::int64_t rank)
      : graph_(*graph), ranks_(ranks), rank_(rank) {}

  // The rank's part of a weight that CanCutWeight accepts. Nodes that it takes are appended to `*nodes`.
  // Parts of constants are made once.
  Value* Cut(Value* value, const Sharding& sharding, std::vector<Node*>* nodes);
  // The rank's part of input `input` of a product by weights of 4 and 8 bits. The weights' columns (axis 0)
  // or rows (axis 1) are split.
  Value* CutBlocked(const Node& product, std::size_t input, const Sharding& sharding);

 private:
  Value* CutConstant(Value* value, const Sharding& sharding);
  // Cuts what a constant was computed from while compiling: passes look there for weights of 8 bits. Returns
  // the node that makes the part; null if there is none, or if the part does not follow from parts.
  Node* CutFolded(const Value& value, const Sharding& sharding, Value* part);
  // A node that makes a part as `maker` makes the whole.
  Node* MakerLike(const Node& maker, std::vector<Value*> inputs, Value* part);
  // `columns` rows of `bytes`, of which the rank's are kept.
  Value* CutRows(Value* value, std::int64_t rows, const Sharding& sharding);

  Graph& graph_;
  std::int64_t ranks_, rank_;
  std::map<std::pair<const Value*, std::string>, Value*> parts_;
};

}  // namespace rewire::compiler
