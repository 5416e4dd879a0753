// SPDX-License-Identifier: Apache-2.0
//
// Operators of .tflite files that move elements. Bytes keep their scale; where a file gives the output
// another one, the operator is refused.
#include <algorithm>
#include <limits>

#include "rewire/compiler/operators/tflite/node.h"
#include "rewire/compiler/operators/tflite_operators.h"

namespace rewire::compiler {
namespace {

// The constant list of an input, such as a shape or the axes.
Result<Ints> ListOf(const Op& op, const TfliteNode& node, int i) {
  const std::optional<Ints> list = KnownInts(node.in(i).value);
  if (list) return *list;
  return op.Unsupported("input {} is no constant", i);
}

// Elements move as they are only if they mean the same before and behind.
Status CheckSameScale(const Op& op, const TfliteNode::Operand& from, const TfliteNode::Operand& to) {
  if (from.OneScale() == to.OneScale() && from.OneZero() == to.OneZero()) return {};
  return op.Unsupported("an input and the output have different scales or zero points");
}

Status LowerTfliteConcatenation(Op& op, const Operator& /*row*/) {
  TfliteNode node(op);
  if (Status fits = node.Check(1, kAnyNumber); !fits) return fits;
  std::vector<std::string> parts;
  for (int i = 0; i < node.inputs(); ++i) {
    if (node.in(i).value == nullptr) return op.Invalid("input {} is missing", i);
    if (Status same = CheckSameScale(op, node.in(i), node.out()); !same) return same;
    parts.push_back(node.parts.Name(node.in(i).value));
  }
  return node.Set(node.parts.Add("Concat", parts, FormOf({IntAttribute("axis", op.Int("axis", 0))})));
}

Status LowerTfliteReshape(Op& op, const Operator& /*row*/) {
  TfliteNode node(op);
  if (Status fits = node.Check(1, 2); !fits) return fits;
  if (Status same = CheckSameScale(op, node.in(0), node.out()); !same) return same;
  Ints shape = op.IntList("new_shape");
  if (node.in(1).value != nullptr) {
    Result<Ints> given = ListOf(op, node, 1);
    if (!given) return Forward(given);
    shape = *std::move(given);
  }
  return node.Set(node.parts.Add("Reshape",
                                 {node.parts.Name(node.in(0).value), node.parts.Name(op.IntsValue(shape))},
                                 FormOf({IntAttribute("allowzero", 1)})));
}

// One output for each of `sizes`.
Status SplitTo(Op& op, TfliteNode* node, int input, std::int64_t axis, const Ints& sizes) {
  for (int i = 0; i < op.outputs(); ++i) {
    if (Status same = CheckSameScale(op, node->in(input), node->out(i)); !same) return same;
  }
  Decomposition::Form form = FormOf({IntAttribute("axis", axis)});
  form.outputs = op.outputs();
  const std::string first = node->parts.Add(
      "Split", {node->parts.Name(node->in(input).value), node->parts.Name(op.IntsValue(sizes))}, form);
  if (!node->parts.status()) return node->parts.status();
  for (int i = 0; i < op.outputs(); ++i) op.Set(i, node->parts.ValueOf(Decomposition::Output(first, i)));
  return {};
}

// The axis of a split, counted from the front.
Result<int> SplitAxis(const Op& op, const TfliteNode& node, int input, int axis_input) {
  const Result<Ints> axis = ListOf(op, node, axis_input);
  if (!axis) return Forward(axis);
  if (axis->size() != 1) return op.Invalid("its axis has {} elements, expected 1", axis->size());
  return op.Axis(axis->front(), node.in(input).value->type.rank());
}

Status LowerTfliteSplit(Op& op, const Operator& /*row*/) {
  TfliteNode node(op);
  if (Status fits = node.Check(2, 2, op.outputs()); !fits) return fits;
  const std::int64_t count = op.Int("num_splits", 0);
  if (count != op.outputs() || count < 1)
    return op.Invalid("num_splits is {}, and it has {} outputs", count, op.outputs());
  const Result<int> axis = SplitAxis(op, node, 1, 0);
  if (!axis) return Forward(axis);
  const auto size = node.in(1).value->type.dims[static_cast<std::size_t>(*axis)].constant();
  if (!size || *size % count != 0)
    return op.Unsupported("{} cannot be split into {} equal parts", TypeText(node.in(1).value->type), count);
  return SplitTo(op, &node, 1, *axis, Ints(static_cast<std::size_t>(count), *size / count));
}

Status LowerTfliteSplitV(Op& op, const Operator& /*row*/) {
  TfliteNode node(op);
  if (Status fits = node.Check(3, 3, op.outputs()); !fits) return fits;
  Result<Ints> sizes = ListOf(op, node, 1);
  if (!sizes) return Forward(sizes);
  const Result<int> axis = SplitAxis(op, node, 0, 2);
  if (!axis) return Forward(axis);
  if (op.Int("num_splits", 0) != op.outputs() || sizes->size() != static_cast<std::size_t>(op.outputs()))
    return op.Invalid("it has {} sizes and {} outputs", sizes->size(), op.outputs());
  // One of the sizes may be -1: what is left.
  const auto open = std::find(sizes->begin(), sizes->end(), -1);
  if (open != sizes->end()) {
    const auto size = node.in(0).value->type.dims[static_cast<std::size_t>(*axis)].constant();
    std::int64_t left = size.value_or(-1);
    for (const std::int64_t each : *sizes) {
      if (each > left && each != -1)
        return op.Invalid("sizes [{}] are more than there is", fmt::join(*sizes, ", "));
      if (each != -1) left -= each;
    }
    *open = left;
  }
  return SplitTo(op, &node, 0, *axis, *sizes);
}

// A bit of a mask for each axis.
bool HasBit(std::int64_t mask, std::size_t axis) { return axis < 31 && (mask >> axis & 1) != 0; }

Status LowerTfliteStridedSlice(Op& op, const Operator& /*row*/) {
  TfliteNode node(op);
  if (Status fits = node.Check(4, 4); !fits) return fits;
  if (Status same = CheckSameScale(op, node.in(0), node.out()); !same) return same;
  Result<Ints> begin = ListOf(op, node, 1), end = ListOf(op, node, 2), strides = ListOf(op, node, 3);
  for (const Result<Ints>* list : {&begin, &end, &strides}) {
    if (!*list) return Forward(*list);
  }
  const std::size_t count = begin->size();
  if (end->size() != count || strides->size() != count)
    return op.Invalid("its begin, end and strides have {}, {} and {} elements", count, end->size(),
                      strides->size());
  constexpr std::int64_t kLast = std::numeric_limits<std::int64_t>::max();
  Ints axes, dropped;
  for (std::size_t i = 0; i < count; ++i) {
    std::int64_t &from = (*begin)[i], &to = (*end)[i], &step = (*strides)[i];
    const auto axis = static_cast<std::int64_t>(i);
    axes.push_back(axis);
    if (HasBit(op.Int("shrink_axis_mask", 0), i)) {
      dropped.push_back(axis);
      to = from == -1 ? kLast : from + 1;
      step = 1;
      continue;
    }
    if (HasBit(op.Int("begin_mask", 0), i)) from = step < 0 ? kLast : 0;
    if (HasBit(op.Int("end_mask", 0), i)) to = step < 0 ? -kLast : kLast;
  }
  const auto list = [&](const Ints& values) { return node.parts.Name(op.IntsValue(values)); };
  std::string slice = node.parts.Add(
      "Slice", {node.parts.Name(node.in(0).value), list(*begin), list(*end), list(axes), list(*strides)});
  if (!dropped.empty()) slice = node.parts.Add("Squeeze", {slice, list(dropped)});
  return node.Set(slice);
}

Status LowerTfliteTranspose(Op& op, const Operator& /*row*/) {
  TfliteNode node(op);
  if (Status fits = node.Check(2, 2); !fits) return fits;
  if (Status same = CheckSameScale(op, node.in(0), node.out()); !same) return same;
  const Result<Ints> perm = ListOf(op, node, 1);
  if (!perm) return Forward(perm);
  return node.Set(node.parts.Add("Transpose", {node.parts.Name(node.in(0).value)},
                                 FormOf({IntsAttribute("perm", *perm)})));
}

// Pads with 0, which a zero point stands for among bytes. The paddings are [rank, 2]: before and behind.
Status LowerTflitePad(Op& op, const Operator& /*row*/) {
  TfliteNode node(op);
  if (Status fits = node.Check(2, 2); !fits) return fits;
  if (Status same = CheckSameScale(op, node.in(0), node.out()); !same) return same;
  const Result<Ints> given = ListOf(op, node, 1);
  if (!given) return Forward(given);
  const auto rank = static_cast<std::size_t>(node.in(0).value->type.rank());
  if (given->size() != 2 * rank) return op.Invalid("it has {} paddings for {} axes", given->size(), rank);
  Ints pads;
  for (const std::size_t side : {0U, 1U}) {
    for (std::size_t i = 0; i < rank; ++i) {
      pads.push_back((*given)[2 * i + side]);
      if (pads.back() < 0) return op.Invalid("a padding is {}, expected 0 or more", pads.back());
    }
  }
  std::vector<std::string> inputs = {node.parts.Name(node.in(0).value), node.parts.Name(op.IntsValue(pads))};
  if (node.in(0).zero != nullptr) {
    if (!node.in(0).OneZero()) return op.Unsupported("input 0 has several zero points");
    inputs.push_back(node.parts.Name(node.in(0).zero));
  }
  return node.Set(node.parts.Add("Pad", inputs));
}

}  // namespace

std::span<const Operator> TfliteMovementOperators() {
  static constexpr Operator kOperators[] = {
      {"CONCATENATION", 1, 0, 3, kAnyNumber, "axis fused_activation_function=0", LowerTfliteConcatenation,
       nullptr, kMayLack},
      {"PAD", 1, 0, 3, kAnyNumber, "", LowerTflitePad, nullptr, kMayLack},
      {"RESHAPE", 1, 0, 3, kAnyNumber, "~new_shape", LowerTfliteReshape, nullptr, kMayLack},
      {"SPLIT", 1, 0, 3, kAnyNumber, "num_splits", LowerTfliteSplit, nullptr, kMayLack},
      {"SPLIT_V", 1, 0, 3, kAnyNumber, "num_splits", LowerTfliteSplitV, nullptr, kMayLack},
      {"STRIDED_SLICE", 1, 0, 3, kAnyNumber,
       "~begin_mask ellipsis_mask=0 ~end_mask new_axis_mask=0 offset=0 ~shrink_axis_mask",
       LowerTfliteStridedSlice, nullptr, kMayLack},
      {"TRANSPOSE", 1, 0, 3, kAnyNumber, "", LowerTfliteTranspose, nullptr, kMayLack},
  };
  return kOperators;
}

}  // namespace rewire::compiler
