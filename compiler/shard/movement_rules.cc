// SPDX-License-Identifier: Apache-2.0
//
// Operators that move elements.
#include <algorithm>
#include <string_view>

#include "rewire/compiler/lower/op.h"
#include "rewire/compiler/passes/edit.h"
#include "rewire/compiler/shard/rule.h"
#include "rewire/kernels/contract/indexing.h"
#include "rewire/kernels/contract/movement.h"

namespace rewire::compiler {
namespace {

using MovementFunction = std::optional<Rule> (*)(const ShardCall& call);

// True if the other inputs are whole.
bool OthersAreWhole(const ShardCall& call, std::size_t from = 1) {
  return std::all_of(call.in.begin() + static_cast<std::ptrdiff_t>(std::min(from, call.in.size())),
                     call.in.end(), [](const Sharding& sharding) { return sharding.IsWhole(); });
}

Rule Through(const ShardCall& call, const Sharding& output) {
  Rule rule = call.Start();
  rule.inputs[0] = call.in[0];
  for (Sharding& each : rule.outputs) each = output;
  return rule;
}

// The first input's axis stays where and as it is.
std::optional<Rule> SameAxis(const ShardCall& call) {
  if (!call.in[0].IsSplit() || !OthersAreWhole(call)) return std::nullopt;
  return Through(call, call.in[0]);
}

std::optional<Rule> TransposeRule(const ShardCall& call) {
  const std::optional<Ints> perm = IntsAttribute(call.node, "perm");
  Sharding output = call.in[0];
  for (int i = 0; output.IsSplit() && i < call.rank(0); ++i) {
    const std::int64_t from = perm ? (*perm)[static_cast<std::size_t>(i)] : call.rank(0) - 1 - i;
    if (from == call.in[0].axis) output.axis = i;
  }
  return Through(call, output);
}

std::optional<Rule> ReshapeRule(const ShardCall& call) {
  const std::optional<Sharding> output =
      ReshapeOf(call.in[0], call.dims(0), call.node.outputs[0]->type.dims, call.ranks);
  if (!output || !OthersAreWhole(call)) return std::nullopt;
  return Through(call, *output);
}

std::optional<Rule> ExpandRule(const ShardCall& call) {
  if (!call.in[0].IsSplit() || !OthersAreWhole(call)) return std::nullopt;
  return Through(call, call.in[0].Along(call.in[0].axis + call.node.outputs[0]->type.rank() - call.rank(0)));
}

std::int64_t AxisOf(const ShardCall& call, std::int64_t fallback, std::size_t input = 0) {
  const std::int64_t axis = IntAttribute(call.node, "axis", fallback);
  return axis < 0 ? axis + call.rank(input) : axis;
}

std::optional<Rule> ConcatRule(const ShardCall& call) {
  const auto found = std::find_if(call.in.begin(), call.in.end(),
                                  [](const Sharding& sharding) { return !sharding.IsWhole(); });
  if (found->IsPartial()) return std::nullopt;
  Rule rule = call.Start();
  if (found->axis != AxisOf(call, 0)) {
    for (std::size_t i = 0; i < call.in.size(); ++i) {
      rule.inputs[i] = *found;
      if (!call.Fits(i, *found)) return std::nullopt;
    }
    rule.outputs[0] = *found;
    return rule;
  }
  std::vector<std::int64_t> segments;
  for (std::size_t i = 0; i < call.in.size(); ++i) {
    rule.inputs[i] = call.in[i];
    if (!call.in[i].IsSplit() || call.in[i].axis != found->axis || !call.in[i].outer.IsConstant())
      return std::nullopt;
    for (std::int64_t row = 0; row < *call.in[i].outer.constant(); ++row)
      segments.insert(segments.end(), call.in[i].segments.begin(), call.in[i].segments.end());
  }
  rule.outputs[0] = Sharding::Split(found->axis, 1, std::move(segments));
  return rule;
}

// The elements from `start` to `end` of the split axis as whole segments, and where a rank's part of them
// begins.
struct Piece {
  Sharding sharding;
  std::int64_t part_start = 0, part_end = 0;
};
std::optional<Piece> PieceOf(const Sharding& x, std::int64_t start, std::int64_t end, std::int64_t ranks) {
  if (!x.outer.IsConstant()) return std::nullopt;
  std::vector<std::int64_t> segments;
  std::int64_t at = 0;
  bool begins = false, ends = false;
  for (std::int64_t row = 0; row < *x.outer.constant() && at < end; ++row) {
    for (const std::int64_t segment : x.segments) {
      begins = begins || at == start;
      if (at >= start && at < end) segments.push_back(segment);
      at += segment;
      ends = ends || at == end;
    }
  }
  if (!begins || !ends || segments.empty()) return std::nullopt;
  return Piece{Sharding::Split(x.axis, 1, std::move(segments)), start / ranks, end / ranks};
}

std::optional<Rule> SplitRule(const ShardCall& call) {
  const Sharding& x = call.in[0];
  if (!x.IsSplit() || !OthersAreWhole(call)) return std::nullopt;
  Rule rule = Through(call, x);
  if (x.axis != AxisOf(call, 0)) return rule;
  std::int64_t start = 0;
  for (std::size_t i = 0; i < rule.outputs.size(); ++i) {
    const auto size = call.node.outputs[i]->type.dims[static_cast<std::size_t>(x.axis)].constant();
    if (!size) return std::nullopt;
    const std::optional<Piece> piece = PieceOf(x, start, start + *size, call.ranks);
    if (!piece) return std::nullopt;
    rule.outputs[i] = piece->sharding;
    start += *size;
  }
  return rule;
}

std::optional<Rule> SliceRule(const ShardCall& call) {
  const Sharding& x = call.in[0];
  std::optional<Ints> starts = IntsAttribute(call.node, "starts"), ends = IntsAttribute(call.node, "ends");
  const std::optional<Ints> axes = IntsAttribute(call.node, "axes"),
                            steps = IntsAttribute(call.node, "steps");
  if (!x.IsSplit() || !starts || !ends) return std::nullopt;
  Rule rule = Through(call, x);
  const auto size = call.dims(0)[static_cast<std::size_t>(x.axis)].constant();
  for (std::size_t i = 0; i < starts->size(); ++i) {
    std::int64_t axis = axes ? (*axes)[i] : static_cast<std::int64_t>(i);
    if (axis < 0) axis += call.rank(0);
    if (axis != x.axis) continue;
    if (!size || (steps && (*steps)[i] != 1)) return std::nullopt;
    const auto held = [&](std::int64_t at) {
      return std::clamp<std::int64_t>(at < 0 ? at + *size : at, 0, *size);
    };
    const std::optional<Piece> piece = PieceOf(x, held((*starts)[i]), held((*ends)[i]), call.ranks);
    if (!piece) return std::nullopt;
    rule.outputs[0] = piece->sharding;
    (*starts)[i] = piece->part_start;
    (*ends)[i] = piece->part_end;
  }
  rule.attributes = {{"starts", *starts}, {"ends", *ends}};
  return rule;
}

std::optional<Rule> DynamicSliceRule(const ShardCall& call) {
  const std::optional<Ints> axes = call.Has(3) ? KnownInts(call.node.inputs[3]) : std::nullopt;
  if (!axes) return std::nullopt;
  const bool sliced = std::any_of(axes->begin(), axes->end(), [&](std::int64_t axis) {
    return (axis < 0 ? axis + call.rank(0) : axis) == call.in[0].axis;
  });
  return sliced ? std::nullopt : SameAxis(call);
}

// The output's axis has the input's size.
std::optional<Rule> UnchangedAxis(const ShardCall& call) {
  if (!call.in[0].IsSplit()) return std::nullopt;
  const auto axis = static_cast<std::size_t>(call.in[0].axis);
  const Shape& to = call.node.outputs[0]->type.dims;
  return axis < to.size() && to[axis] == call.dims(0)[axis] ? SameAxis(call) : std::nullopt;
}

// An element of a list of integers, as far as it is known.
std::optional<std::int64_t> ElementOf(const Value* list, std::int64_t at) {
  if (const std::optional<Shape> known = KnownElements(list)) {
    return at < static_cast<std::int64_t>(known->size()) ? (*known)[static_cast<std::size_t>(at)].constant()
                                                         : std::nullopt;
  }
  const Node* joined = ProducerOf(list, names::kConcat);
  if (joined == nullptr) return std::nullopt;
  for (const Value* part : joined->inputs) {
    const std::optional<std::int64_t> size = ProductOf(part->type.dims).constant();
    if (!size) return std::nullopt;
    if (at < *size) return ElementOf(part, at);
    at -= *size;
  }
  return std::nullopt;
}

std::optional<Rule> PadRule(const ShardCall& call) {
  const std::optional<Ints> pads = IntsAttribute(call.node, "pads");
  if (!call.in[0].IsSplit()) return std::nullopt;
  for (const std::int64_t at : {call.in[0].axis, call.in[0].axis + call.rank(0)}) {
    const std::optional<std::int64_t> pad =
        pads ? std::optional((*pads)[static_cast<std::size_t>(at)])
             : (call.Has(1) && !call.Has(3) ? ElementOf(call.node.inputs[1], at) : std::nullopt);
    if (pad != 0) return std::nullopt;
  }
  return SameAxis(call);
}

// Rows of a table of weights, which is split by its columns. Or by its rows: then a rank gives zeros for
// those that others have, and the sum over all ranks has each row once.
std::optional<Rule> TableRule(const ShardCall& call, int axis) {
  if (call.rank(0) != 2 || axis != 0 || !call.is_weight(*call.node.inputs[0])) return std::nullopt;
  const auto size = call.dims(0)[static_cast<std::size_t>(call.table_axis)].constant();
  const Sharding split = Sharding::Split(call.table_axis, size.value_or(1));
  if (!size || !call.Fits(0, split)) return std::nullopt;
  const Type& type = call.node.outputs[0]->type;
  Rule rule = call.Start();
  rule.inputs[0] = split;
  rule.starts = true;
  if (call.table_axis == 1) {
    rule.outputs[0] = split.Along(type.rank() - 1);
    rule.form = "columns";
    return rule;
  }
  const bool floats =
      type.dtype == kFloat32 || type.dtype == kFloat64 || type.dtype == kFloat16 || type.dtype == kBFloat16;
  if (!floats) return std::nullopt;
  rule.outputs[0] = Sharding::Partial();
  rule.own_rows = true;
  rule.form = "rows";
  return rule;
}

std::optional<Rule> GatherRule(const ShardCall& call) {
  const auto axis = static_cast<int>(AxisOf(call, 0));
  const Sharding &x = call.in[0], &indices = call.in[1];
  if (call.may_start && x.IsWhole() && indices.IsWhole()) return TableRule(call, axis);
  Rule rule = call.Start();
  if (x.IsSplit() && indices.IsWhole() && x.axis != axis) {
    rule.inputs[0] = x;
    rule.outputs[0] = x.axis < axis ? x : x.Along(x.axis + call.rank(1) - 1);
    return rule;
  }
  if (x.IsWhole() && indices.IsSplit()) {
    rule.inputs[1] = indices;
    rule.outputs[0] = indices.Along(axis + indices.axis);
    return rule;
  }
  return std::nullopt;
}

// Inputs that have all the same axes, of which one is indexed.
std::optional<Rule> ElementsRule(const ShardCall& call) {
  const auto found =
      std::find_if(call.in.begin(), call.in.end(), [](const Sharding& each) { return each.IsSplit(); });
  if (found == call.in.end() || found->axis == AxisOf(call, 0)) return std::nullopt;
  Rule rule = call.Start();
  for (std::size_t i = 0; i < call.in.size(); ++i) {
    rule.inputs[i] = *found;
    if (!call.Fits(i, *found)) return std::nullopt;
  }
  rule.outputs[0] = *found;
  return rule;
}

struct Row {
  std::string_view kernel;
  MovementFunction rule;
};

constexpr Row kRows[] = {
    {names::kConcat, ConcatRule},
    {names::kCopy, ReshapeRule},
    {names::kDynamicPad, PadRule},
    {names::kDynamicSlice, DynamicSliceRule},
    {names::kExpand, ExpandRule},
    {names::kGather, GatherRule},
    {names::kGatherElements, ElementsRule},
    {names::kPad, PadRule},
    {names::kScatterElements, ElementsRule},
    {names::kSlice, SliceRule},
    {names::kSplit, SplitRule},
    {names::kTile, UnchangedAxis},
    {names::kTranspose, TransposeRule},
};

}  // namespace

std::optional<Rule> MovementRule(const ShardCall& call) {
  const bool reshape = call.node.kind == NodeKind::kReshape;
  const Row* const row = std::find_if(std::begin(kRows), std::end(kRows),
                                      [&](const Row& each) { return each.kernel == call.node.kernel; });
  if (!reshape && (call.node.kind != NodeKind::kKernel || row == std::end(kRows))) return std::nullopt;
  const bool moves = reshape || row->rule == TransposeRule;
  // Terms of a sum move as the sum would.
  if (call.in[0].IsPartial() && (!moves || !call.has_one_use(*call.node.inputs[0]))) return std::nullopt;
  return reshape ? ReshapeRule(call) : row->rule(call);
}

}  // namespace rewire::compiler
