// SPDX-License-Identifier: Apache-2.0
//
// Operators that compute each element by itself, and those that work along some axes.
#include <algorithm>

#include "rewire/compiler/ir/kernel_traits.h"
#include "rewire/compiler/passes/edit.h"
#include "rewire/compiler/shard/kernel_calls.h"
#include "rewire/compiler/shard/rule.h"
#include "rewire/kernels/contract/elementwise.h"
#include "rewire/kernels/contract/indexing.h"
#include "rewire/kernels/contract/normalization.h"
#include "rewire/kernels/contract/quantization.h"
#include "rewire/kernels/contract/reduction.h"

namespace rewire::compiler {
namespace {

// Sums of terms go through what is linear in them. A weight that is added, such as a bias, is a term of the
// first rank.
std::optional<Rule> LinearRule(const ShardCall& call) {
  Rule rule = call.Start();
  const std::size_t partial = static_cast<std::size_t>(
      std::count_if(call.in.begin(), call.in.end(), [](const Sharding& each) { return each.IsPartial(); }));
  const bool first = call.in[0].IsPartial();
  bool sum = CallsOneOf(call.node, {names::kAdd, names::kSub});
  for (std::size_t i = 0; i < call.in.size(); ++i)
    sum = sum && (call.in[i].IsPartial() || call.is_weight(*call.node.inputs[i]));
  const bool scaled = (CallsOneOf(call.node, {names::kMul}) && partial == 1) ||
                      (CallsOneOf(call.node, {names::kDiv}) && partial == 1 && first) ||
                      CallsOneOf(call.node, {names::kNeg});
  if (!sum && !scaled) return std::nullopt;
  for (std::size_t i = 0; i < call.in.size(); ++i) {
    // A value that something else reads is summed in any case.
    if (call.in[i].IsPartial() && !call.has_one_use(*call.node.inputs[i])) return std::nullopt;
    if (call.in[i].IsSplit()) return std::nullopt;
    // Exchanging more elements costs more than it saves.
    if (call.in[i].IsPartial() && !(ProductOf(call.dims(i)) == ProductOf(call.node.outputs[0]->type.dims)))
      return std::nullopt;
    rule.inputs[i] = sum ? Sharding::Partial() : call.in[i];
  }
  rule.outputs[0] = Sharding::Partial();
  return rule;
}

// Inputs broadcast: the axes count from the last one.
std::optional<Rule> BroadcastRule(const ShardCall& call) {
  const auto found = std::find_if(call.in.begin(), call.in.end(),
                                  [](const Sharding& sharding) { return sharding.IsSplit(); });
  if (found == call.in.end()) return std::nullopt;
  Rule rule = call.Start();
  const int rank = call.node.outputs[0]->type.rank();
  const int axis = found->axis + rank - call.rank(static_cast<std::size_t>(found - call.in.begin()));
  for (std::size_t i = 0; i < call.in.size(); ++i) {
    const int own = axis - (rank - call.rank(i));
    if (own < 0 || call.dims(i)[static_cast<std::size_t>(own)].Is(1)) {
      if (!call.in[i].IsWhole()) return std::nullopt;
      continue;
    }
    rule.inputs[i] = found->Along(own);
    if (!call.Fits(i, rule.inputs[i])) return std::nullopt;
  }
  rule.outputs[0] = found->Along(axis);
  return rule;
}

// x with a scale and a zero of one element, or of one for each position along an axis.
std::optional<Rule> QuantizationRule(const ShardCall& call) {
  const Sharding& x = call.in[0];
  if (!x.IsSplit() || IntAttribute(call.node, "block_size", 0) != 0) return std::nullopt;
  std::int64_t axis = IntAttribute(call.node, "axis", 1);
  if (axis < 0) axis += call.rank(0);
  Rule rule = call.Start();
  rule.inputs[0] = rule.outputs[0] = x;
  for (std::size_t i = 1; i < call.in.size(); ++i) {
    if (!call.Has(i)) continue;
    if (axis == x.axis && !ProductOf(call.dims(i)).Is(1)) rule.inputs[i] = x.Along(0);
    if (!call.Fits(i, rule.inputs[i])) return std::nullopt;
  }
  return rule;
}

// x with numbers for each channel.
std::optional<Rule> BatchNormRule(const ShardCall& call) {
  const Sharding& x = call.in[0];
  if (!x.IsSplit()) return std::nullopt;
  Rule rule = call.Start();
  rule.inputs[0] = rule.outputs[0] = x;
  for (std::size_t i = 1; i < call.in.size(); ++i) {
    if (x.axis == 1) rule.inputs[i] = x.Along(0);
    if (!call.Fits(i, rule.inputs[i])) return std::nullopt;
  }
  return rule;
}

// Operators that compute along axes and need these whole: the others may be split.
std::optional<Rule> AlongRule(const ShardCall& call, const std::vector<std::int64_t>& axes, bool drops) {
  const Sharding& x = call.in[0];
  if (!x.IsSplit()) return std::nullopt;
  int axis = x.axis;
  for (std::int64_t each : axes) {
    if (each < 0) each += call.rank(0);
    if (each == x.axis) return std::nullopt;
    if (drops && each < x.axis) --axis;
  }
  Rule rule = call.Start();
  for (std::size_t i = 1; i < call.in.size(); ++i) {
    if (!call.in[i].IsWhole()) return std::nullopt;
  }
  rule.inputs[0] = x;
  for (Sharding& output : rule.outputs) output = x.Along(axis);
  return rule;
}

std::vector<std::int64_t> AllAxes(int rank) {
  std::vector<std::int64_t> axes;
  for (int i = 0; i < rank; ++i) axes.push_back(i);
  return axes;
}

std::optional<Rule> ReductionRule(const ShardCall& call) {
  if (call.node.inputs.size() != 1) return std::nullopt;
  const bool position = CallsOneOf(call.node, {names::kArgMax, names::kArgMin});
  std::vector<std::int64_t> axes = position
                                       ? std::vector{IntAttribute(call.node, "axis", 0)}
                                       : IntsAttribute(call.node, "axes").value_or(AllAxes(call.rank(0)));
  if (axes.empty()) axes = AllAxes(call.rank(0));
  const bool drops = IntAttribute(call.node, "keepdims", 1) == 0;
  Rule rule = call.Start();
  if (call.in[0].IsPartial()) {
    if (!CallsOneOf(call.node, {names::kReduceSum, names::kReduceMean}) ||
        !call.has_one_use(*call.node.inputs[0]))
      return std::nullopt;
    rule.inputs[0] = rule.outputs[0] = Sharding::Partial();
    return rule;
  }
  const bool summed = std::any_of(axes.begin(), axes.end(), [&](std::int64_t axis) {
    return (axis < 0 ? axis + call.rank(0) : axis) == call.in[0].axis;
  });
  if (!call.in[0].IsSplit() || !summed) return AlongRule(call, axes, drops);
  if (!CallsOneOf(call.node, {names::kReduceSum})) return std::nullopt;
  rule.inputs[0] = call.in[0];
  rule.outputs[0] = Sharding::Partial();
  return rule;
}

// The axes from the attribute on.
std::vector<std::int64_t> AxesFrom(const ShardCall& call) {
  std::int64_t axis = IntAttribute(call.node, "axis", -1);
  if (axis < 0) axis += call.rank(0);
  std::vector<std::int64_t> axes;
  for (; axis < call.rank(0); ++axis) axes.push_back(axis);
  return axes;
}

}  // namespace

std::optional<Rule> ElementwiseRule(const ShardCall& call) {
  if (CallsOneOf(call.node, {names::kQuantizeLinear, names::kDequantizeLinear}))
    return QuantizationRule(call);
  if (CallsOneOf(call.node, {names::kBatchNorm})) return BatchNormRule(call);
  if (!IsElementwise(call.graph, call.node, call.node.inputs.size())) return std::nullopt;
  if (std::any_of(call.in.begin(), call.in.end(), [](const Sharding& each) { return each.IsPartial(); }))
    return LinearRule(call);
  return BroadcastRule(call);
}

std::optional<Rule> AxisRule(const ShardCall& call) {
  const Node& node = call.node;
  if (CallsOneOf(node, {names::kSoftmax, names::kLogSoftmax, names::kHardmax, names::kTopK}))
    return AlongRule(call, {IntAttribute(node, "axis", -1)}, false);
  if (CallsOneOf(node, {names::kLayerNorm, names::kRmsNorm})) return AlongRule(call, AxesFrom(call), false);
  if (node.kind == NodeKind::kKernel &&
      (names::IsReduction(node.kernel) || CallsOneOf(node, {names::kArgMax, names::kArgMin})))
    return ReductionRule(call);
  return std::nullopt;
}

}  // namespace rewire::compiler
