// SPDX-License-Identifier: Apache-2.0
//
// Attention, its caches and its positions: whole heads on each rank.
#include "rewire/compiler/passes/edit.h"
#include "rewire/compiler/shard/rule.h"
#include "rewire/kernels/contract/attention.h"

namespace rewire::compiler {
namespace {

// The axis of the heads of a tensor [batch, heads, length, size] or [batch, length, heads * size].
int AxisOfHeads(int rank) { return rank == 4 ? 1 : 2; }

// The tensor split by so many heads; nothing if the ranks do not divide them.
std::optional<Sharding> ByHeads(const ShardCall& call, std::size_t input, std::int64_t heads) {
  if (heads < 1 || heads % call.ranks != 0) return std::nullopt;
  const int axis = AxisOfHeads(call.rank(input));
  const auto size = call.dims(input)[static_cast<std::size_t>(axis)].constant();
  if (!size || *size % heads != 0) return std::nullopt;
  return Sharding::Split(axis, *size);
}

// q, k, v, begin, lengths, bias, mask. k and v have rank 4.
std::optional<Rule> AttentionCall(const ShardCall& call) {
  const Shape& k = call.dims(1);
  if (call.rank(1) != 4 || call.rank(2) != 4) return std::nullopt;
  Rule rule = call.Start();
  // Sentences of a batch are apart.
  if (call.in[0].IsSplit() && call.in[0].axis == 0) return std::nullopt;
  const std::optional<std::int64_t> groups = k[1].constant(), size = k[3].constant();
  if (!groups) return std::nullopt;
  std::int64_t heads = 0;
  if (call.rank(0) == 4) {
    heads = call.dims(0)[1].constant().value_or(0);
  } else if (size && *size > 0) {
    heads = call.dims(0)[2].constant().value_or(0) / *size;
  }
  const std::optional<Sharding> q = ByHeads(call, 0, heads);
  if (!q || !call.Fits(0, *q)) return std::nullopt;
  rule.inputs[0] = *q;
  // One head of keys serves all of the queries'. Otherwise a rank has the keys of its queries.
  for (const std::size_t i : {std::size_t{1}, std::size_t{2}}) {
    if (*groups == 1) {
      if (!call.in[i].IsWhole()) return std::nullopt;
      continue;
    }
    const std::optional<Sharding> of_keys = ByHeads(call, i, *groups);
    if (!of_keys || !call.Fits(i, *of_keys)) return std::nullopt;
    rule.inputs[i] = *of_keys;
  }
  for (std::size_t i = 3; i < call.in.size(); ++i) {
    const int axis = call.Has(i) ? call.rank(i) - 3 : -1;
    const bool of_heads = i >= 5 && axis >= 0 && !call.dims(i)[static_cast<std::size_t>(axis)].Is(1);
    if (of_heads && ProductOf(call.dims(i)).Is(0)) continue;  // left out
    if (of_heads) rule.inputs[i] = Sharding::Split(axis, heads);
    if (!call.Fits(i, rule.inputs[i])) return std::nullopt;
  }
  const Value& out = *call.node.outputs[0];
  const int axis = AxisOfHeads(out.type.rank());
  rule.outputs[0] =
      Sharding::Split(axis, out.type.dims[static_cast<std::size_t>(axis)].constant().value_or(0));
  const std::int64_t stated = IntAttribute(call.node, "heads", 0);
  if (stated > 0) rule.attributes = {{"heads", stated / call.ranks}};
  rule.form = "heads";
  return rule;
}

// cache, x, begin.
std::optional<Rule> AppendCall(const ShardCall& call) {
  const std::optional<std::int64_t> heads = call.dims(0)[1].constant();
  if (!heads) return std::nullopt;
  Rule rule = call.Start();
  for (const std::size_t i : {std::size_t{0}, std::size_t{1}}) {
    const std::optional<Sharding> split = ByHeads(call, i, *heads);
    if (!split || !call.Fits(i, *split)) return std::nullopt;
    rule.inputs[i] = *split;
  }
  if (!call.in[2].IsWhole()) return std::nullopt;
  rule.outputs[0] = rule.inputs[0];
  return rule;
}

// x, cosines, sines, positions.
std::optional<Rule> RotaryCall(const ShardCall& call) {
  const std::int64_t stated = IntAttribute(call.node, "heads", 0);
  const std::int64_t heads = call.rank(0) == 4 ? call.dims(0)[1].constant().value_or(0) : stated;
  const std::optional<Sharding> split = ByHeads(call, 0, heads);
  if (!split || !(call.in[0] == *split)) return std::nullopt;
  Rule rule = call.Start();
  for (std::size_t i = 1; i < call.in.size(); ++i) {
    if (!call.in[i].IsWhole()) return std::nullopt;
  }
  rule.inputs[0] = rule.outputs[0] = *split;
  if (stated > 0) rule.attributes = {{"heads", stated / call.ranks}};
  return rule;
}

}  // namespace

std::optional<Rule> AttentionRule(const ShardCall& call) {
  if (call.node.kind != NodeKind::kKernel) return std::nullopt;
  if (call.node.kernel == names::kAttention) return AttentionCall(call);
  if (call.node.kernel == names::kCacheAppend) return AppendCall(call);
  if (call.node.kernel == names::kRotary) return RotaryCall(call);
  return std::nullopt;
}

}  // namespace rewire::compiler
