// SPDX-License-Identifier: Apache-2.0
//
// How the columns of a product are cut behind it: a product that makes queries, keys and values side by side
// is split by the columns of each of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <unordered_map>
#include <vector>

#include "rewire/compiler/ir/graph.h"

namespace rewire::compiler {

class ShardColumns {
 public:
  ShardColumns(const Graph& graph, std::int64_t ranks);

  // The segments of an axis of `size` elements, of which the ranks divide each. One of all elements where
  // nothing cuts the axis, or where the ranks do not divide the pieces.
  std::vector<std::int64_t> SegmentsOf(const Value& value, int axis, std::int64_t size) const;
  // How often the value is read.
  std::size_t UseCount(const Value& value) const;

 private:
  void Collect(const Block& block);
  void Cuts(const Value& value, int axis, std::int64_t size, int steps, std::set<std::int64_t>* cuts) const;

  const Graph& graph_;
  const std::int64_t ranks_;
  std::unordered_map<const Value*, std::vector<const Node*>> users_;  // null: a result
};

}  // namespace rewire::compiler
