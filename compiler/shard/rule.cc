// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/shard/rule.h"

#include <algorithm>

namespace rewire::compiler {

bool ShardCall::Fits(std::size_t input, const Sharding& sharding) const {
  if (in[input] == sharding) return true;
  return in[input].IsWhole() && Divides(sharding, dims(input), ranks) &&
         can_be(*node.inputs[input], sharding);
}

Rule ShardCall::Start() const {
  Rule rule;
  rule.inputs.resize(node.inputs.size());
  rule.outputs.resize(node.outputs.size());
  return rule;
}

std::optional<Rule> RuleOf(const ShardCall& call) {
  const bool split = std::any_of(call.in.begin(), call.in.end(),
                                 [](const Sharding& sharding) { return !sharding.IsWhole(); });
  const auto ranked = [](const Value* value) {
    return value == nullptr || (value->type.IsTensor() && value->type.ranked);
  };
  const Node& node = call.node;
  if ((!split && !call.may_start) || node.returns || node.outputs.empty() || !node.blocks.empty() ||
      !std::all_of(node.inputs.begin(), node.inputs.end(), ranked) ||
      !std::all_of(node.outputs.begin(), node.outputs.end(), ranked))
    return std::nullopt;
  for (const auto family : {ProductRule, AttentionRule, MovementRule, AxisRule, ElementwiseRule}) {
    std::optional<Rule> rule = family(call);
    if (!rule) continue;
    const auto fits = [&](const Sharding& sharding, const Value* value) {
      return Divides(sharding, value->type.dims, call.ranks);
    };
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      if (!fits(rule->outputs[i], node.outputs[i])) return std::nullopt;
    }
    return rule;
  }
  return std::nullopt;
}

}  // namespace rewire::compiler
