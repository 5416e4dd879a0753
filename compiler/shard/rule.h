// SPDX-License-Identifier: Apache-2.0
//
// How a node computes on the ranks: for each operator, which shardings of its inputs give which of its
// outputs. The rules are the operators' own algebra.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rewire/compiler/ir/graph.h"
#include "rewire/compiler/shard/sharding.h"

namespace rewire::compiler {

struct Rule {
  // The shardings that the node needs of its inputs, and those of its outputs then.
  std::vector<Sharding> inputs, outputs;
  // Attributes of a rank's call that differ from those of the whole.
  std::vector<Attribute> attributes;
  // An input that is added behind the sum of all ranks, where the node gives partial results: a bias. The
  // node then does not get it, and its output is whole.
  std::optional<std::size_t> late_term;
  // The axis of the output along which the late term lies; the last one of a product.
  int late_axis = -1;
  // A table of which a rank has some rows: it gives zeros for the rows of others.
  bool own_rows = false;
  // The name of the split for the report: "columns", "rows", "heads". Static storage.
  const char* form = nullptr;
  // The node begins a split: all its inputs but weights are whole.
  bool starts = false;
};

// A node whose inputs lie in given ways.
struct ShardCall {
  const Graph& graph;
  const Node& node;
  std::int64_t ranks = 2;
  std::vector<Sharding> in;
  // The node may begin a split.
  bool may_start = false;
  // Whether the value can be had with this sharding without an exchange: it is a weight, or a rank takes its
  // part of the whole.
  std::function<bool(const Value& value, const Sharding& sharding)> can_be;
  // How columns of the node's output should be split so that what follows finds its parts whole.
  std::function<std::vector<std::int64_t>(const Value& value, int axis, std::int64_t size)> segments;
  // True if the value is made of constants alone.
  std::function<bool(const Value& value)> is_weight;
  // Nothing else reads the value.
  std::function<bool(const Value& value)> has_one_use;
  // The axis by which a table of weights is split.
  int table_axis = 1;

  const Shape& dims(std::size_t input) const { return node.inputs[input]->type.dims; }
  int rank(std::size_t input) const { return node.inputs[input]->type.rank(); }
  bool Has(std::size_t input) const { return input < node.inputs.size() && node.inputs[input] != nullptr; }
  // The only input that is split; nothing if there is none, or if another one lies in another way.
  bool Fits(std::size_t input, const Sharding& sharding) const;
  // A rule with all inputs whole and one output.
  Rule Start() const;
};

// The rule of a node of which not all inputs are whole, or which may begin a split. nullopt: it needs whole
// inputs, and its outputs are whole.
std::optional<Rule> RuleOf(const ShardCall& call);

// The rules by families.
std::optional<Rule> ElementwiseRule(const ShardCall& call);
std::optional<Rule> MovementRule(const ShardCall& call);
std::optional<Rule> ProductRule(const ShardCall& call);
std::optional<Rule> AttentionRule(const ShardCall& call);
// Operators along some axes: reductions, softmax, normalization.
std::optional<Rule> AxisRule(const ShardCall& call);

}  // namespace rewire::compiler
