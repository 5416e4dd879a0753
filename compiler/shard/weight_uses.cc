// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/shard/weight_uses.h"

#include <algorithm>
#include <set>

#include "rewire/compiler/shard/costs.h"
#include "rewire/compiler/shard/kernel_calls.h"
#include "rewire/kernels/contract/indexing.h"
#include "rewire/kernels/contract/product.h"

namespace rewire::compiler {
namespace {

// The packed weights of a product by few bits come from nodes that run once.
std::uint64_t BlockedBytes(const Node& node) {
  std::set<const Value*> constants;
  for (std::size_t i = 1; i < 4 && i < node.inputs.size(); ++i) {
    if (node.inputs[i]->producer == nullptr) continue;
    for (const Value* input : node.inputs[i]->producer->inputs) constants.insert(input);
  }
  std::uint64_t bytes = 0;
  for (const Value* constant : constants) bytes += BytesOfWeight(*constant);
  return bytes;
}

// Calls visit(weight, sharding) for each weight of two axes and more.
template <typename Visit>
void ForEachWeight(const Graph& graph, const Node& node, const Rule* rule, const Visit& visit) {
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const Value* input = node.inputs[i];
    if (input == nullptr || !IsWeight(graph, *input) || input->type.rank() < 2) continue;
    visit(*input, rule != nullptr ? rule->inputs[i] : Sharding::Whole());
  }
}

}  // namespace

SplitBytes SplitBytesOf(const Graph& graph, const Node& node, const Rule* rule, std::int64_t ranks) {
  SplitBytes bytes;
  if (CallsOneOf(node, {names::kBlockedMatMul})) {
    bytes.whole = bytes.part = BlockedBytes(node);
    if (rule != nullptr && rule->inputs[1].IsSplit()) bytes.part /= static_cast<std::uint64_t>(ranks);
    return bytes;
  }
  ForEachWeight(graph, node, rule, [&](const Value& weight, const Sharding& sharding) {
    bytes.whole += BytesOfWeight(weight);
    bytes.part += BytesOfPart(graph, weight, sharding, ranks);
  });
  return bytes;
}

std::uint64_t BytesReadBy(const Graph& graph, const Node& node) {
  if (CallsOneOf(node, {names::kBlockedMatMul})) return BlockedBytes(node);
  if (CallsOneOf(node, {names::kGather}))
    return static_cast<std::uint64_t>(CountedBytes(graph, *node.outputs[0]));
  std::uint64_t bytes = 0;
  ForEachWeight(graph, node, nullptr, [&](const Value& weight, const Sharding&) {
    bytes += std::min(BytesOfWeight(weight), static_cast<std::uint64_t>(CountedBytes(graph, weight)));
  });
  return bytes;
}

void WeightUses::Add(const Node& node, const Rule* rule) {
  // A node that makes a weight uses nothing: constants are used where the weight is.
  if (node.outputs.size() == 1 && IsWeight(*graph_, *node.outputs[0])) return;
  ForEachWeight(*graph_, node, rule, [&](const Value& weight, const Sharding& sharding) {
    for (const ConstantPart& part : PartsOfConstants(*graph_, weight, sharding, ranks_)) {
      of_constants_[part.constant].push_back({&node, part.sharding});
      by_nodes_[&node].push_back(part);
    }
  });
}

std::vector<ConstantPart> WeightUses::By(const Node& node) const {
  const auto found = by_nodes_.find(&node);
  return found == by_nodes_.end() ? std::vector<ConstantPart>() : found->second;
}

std::vector<Sharding> WeightUses::ShardingsOf(const Value* constant) const {
  std::vector<Sharding> different;
  for (const Use& use : Of(constant)) {
    if (std::find(different.begin(), different.end(), use.sharding) == different.end())
      different.push_back(use.sharding);
  }
  return different;
}

bool WeightUses::AreCutOnce(const Node& node) const {
  const std::vector<ConstantPart> parts = By(node);
  return std::all_of(parts.begin(), parts.end(),
                     [&](const ConstantPart& part) { return ShardingsOf(part.constant).size() == 1; });
}

std::uint64_t WeightUses::BytesHeld(const Value& constant) const {
  std::uint64_t bytes = 0;
  for (const Sharding& sharding : ShardingsOf(&constant))
    bytes += BytesOfPart(*graph_, constant, sharding, ranks_);
  return bytes;
}

}  // namespace rewire::compiler
