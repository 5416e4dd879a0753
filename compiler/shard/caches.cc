// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/shard/caches.h"

#include <algorithm>

#include "rewire/compiler/passes/edit.h"
#include "rewire/compiler/shard/kernel_calls.h"
#include "rewire/kernels/contract/attention.h"
#include "rewire/kernels/contract/elementwise.h"
#include "rewire/kernels/contract/indexing.h"
#include "rewire/kernels/contract/movement.h"

namespace rewire::compiler {
namespace {

// True for a node that writes into a cache, or moves one.
bool Carries(const Node& node) {
  return node.kind == NodeKind::kReshape ||
         CallsOneOf(node, {names::kConcat, names::kCacheAppend, names::kCast, names::kCopy,
                           names::kDynamicPad, names::kDynamicSlice, names::kPad, names::kScatterElements,
                           names::kSlice, names::kTranspose});
}

void CollectInputs(const Value* value, const std::set<const Value*>& parameters,
                   std::set<const Value*>* visited, std::set<const Value*>* inputs) {
  if (value == nullptr || !visited->insert(value).second) return;
  if (parameters.contains(value)) inputs->insert(value);
  const Node* node = value->producer;
  if (node == nullptr || !Carries(*node) || node->inputs.empty()) return;
  if (node->kernel == names::kConcat) {
    for (const Value* input : node->inputs) CollectInputs(input, parameters, visited, inputs);
  } else {
    CollectInputs(node->inputs[0], parameters, visited, inputs);
  }
}

}  // namespace

ShardCaches::ShardCaches(const Graph& graph) {
  const std::set<const Value*> parameters(graph.main.parameters.begin(), graph.main.parameters.end());
  for (const Value* result : graph.main.results) {
    std::set<const Value*> visited;
    if (result == nullptr || parameters.contains(result)) continue;
    CollectInputs(result, parameters, &visited, &inputs_of_[result]);
    inputs_.insert(inputs_of_[result].begin(), inputs_of_[result].end());
  }
}

void ShardCaches::Wish(const Value* value, const Sharding& sharding, std::int64_t ranks,
                       std::map<const Value*, Sharding>* wishes) const {
  if (!sharding.IsSplit() || !value->type.IsTensor() || !value->type.ranked ||
      !Divides(sharding, value->type.dims, ranks))
    return;
  if (inputs_.contains(value)) {
    wishes->emplace(value, sharding);
    return;
  }
  const Node* node = value->producer;
  if (node == nullptr || node->inputs.empty() || !node->inputs[0]->type.ranked) return;
  const Value* from = node->inputs[0];
  if (node->kind == NodeKind::kReshape) {
    const std::optional<Sharding> before = ReshapeOf(sharding, value->type.dims, from->type.dims, ranks);
    if (before) Wish(from, *before, ranks, wishes);
  } else if (CallsOneOf(*node, {names::kTranspose})) {
    const auto perm = IntsAttribute(*node, "perm");
    const int axis = perm ? static_cast<int>((*perm)[static_cast<std::size_t>(sharding.axis)])
                          : from->type.rank() - 1 - sharding.axis;
    Wish(from, sharding.Along(axis), ranks, wishes);
  } else if (CallsOneOf(*node, {names::kCast, names::kCopy, names::kDynamicPad, names::kDynamicSlice,
                                names::kPad, names::kSlice}) &&
             from->type.rank() == value->type.rank()) {
    Wish(from, sharding, ranks, wishes);
  }
}

bool ShardCaches::IsSplit(const Value* result, const std::map<const Value*, Sharding>& split_inputs) const {
  const auto found = inputs_of_.find(result);
  return found != inputs_of_.end() && !found->second.empty() &&
         std::all_of(found->second.begin(), found->second.end(),
                     [&](const Value* input) { return split_inputs.contains(input); });
}

}  // namespace rewire::compiler
