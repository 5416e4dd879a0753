// SPDX-License-Identifier: Apache-2.0
//
// Caches of keys and values: inputs of `main` that come back as results with more written into them. A rank
// has the heads of its queries, so such inputs and results may stay split.
#pragma once

#include <cstdint>
#include <map>
#include <set>

#include "rewire/compiler/ir/graph.h"
#include "rewire/compiler/shard/sharding.h"

namespace rewire::compiler {

class ShardCaches {
 public:
  explicit ShardCaches(const Graph& graph);

  // For a value that is a cache, in any order and with any dimensions. Adds to `*wishes` the split of its
  // input that gives the value this one.
  void Wish(const Value* value, const Sharding& sharding, std::int64_t ranks,
            std::map<const Value*, Sharding>* wishes) const;
  // The input must stay whole.
  void Ban(const Value* input) { inputs_.erase(input); }
  // True if the result is a cache, and its input is split.
  bool IsSplit(const Value* result, const std::map<const Value*, Sharding>& split_inputs) const;

 private:
  std::set<const Value*> inputs_;                             // caches
  std::map<const Value*, std::set<const Value*>> inputs_of_;  // those that a result has
};

}  // namespace rewire::compiler
