// SPDX-License-Identifier: Apache-2.0
// Operators on strings (text_values.h).
#include <algorithm>

#include "rewire/compiler/lower/registry.h"
#include "rewire/compiler/operators/attention_core.h"
#include "rewire/compiler/operators/text_values.h"
#include "rewire/compiler/operators/texts.h"
#include "rewire/kernels/contract/elementwise.h"
#include "rewire/kernels/contract/generator.h"
#include "rewire/kernels/contract/indexing.h"
#include "rewire/kernels/contract/re2.h"
#include "rewire/kernels/contract/reduction.h"
#include "rewire/kernels/contract/text.h"

namespace rewire::compiler {
namespace {

Status AllStrings(Op& op) {
  for (int i = 0; i < op.inputs(); ++i) {
    if (!op.lowering().strings().Has(op.in(i))) return op.Invalid("input {} is not strings", i);
  }
  return {};
}

Status LowerStringConcat(Op& op, const Operator& /*row*/) {
  if (Status strings = AllStrings(op); !strings) return strings;
  Result<Shape> dims = op.Broadcast(op.in(0)->type.dims, op.in(1)->type.dims);
  if (!dims) return Forward(dims);
  std::vector<Value*> arguments;
  for (int i = 0; i < 2; ++i) {
    for (Value* part : ExpandedTexts(op, TextTensorOf(op, op.in(i)), *dims).arguments())
      arguments.push_back(part);
  }
  SetTexts(op, 0, NewTexts(op, names::kTextConcat, arguments, {}, *dims));
  return {};
}

// The pieces of each string along a new axis, as long as most pieces are; the rest is empty.
Status LowerStringSplit(Op& op, const Operator& /*row*/) {
  if (Status strings = AllStrings(op); !strings) return strings;
  const TextTensor x = TextTensorOf(op, op.in(0));
  const Shape& dims = x.positions->type.dims;
  Attributes attributes = {{"maxsplit", op.Int("maxsplit", -1)}};
  if (const std::string delimiter = TextOf(op, "delimiter", ""); !delimiter.empty())
    attributes.push_back({"delimiter", delimiter});
  Value* counts = op.Call(names::kTextSplitCounts, x.arguments(), attributes, TensorOf(kInt64, dims));
  const DimExpr count = ProductOf(dims);
  Value* some = ConcatTo(op, op.Reshape(counts, {count}), op.IntsValue({0}), 0);
  Value* width = op.Reduce(names::kReduceMax, some, {0}, true);
  Value* total = op.Apply(names::kMul, op.DimsValue({count}), width);
  std::vector<Value*> arguments = x.arguments();
  arguments.push_back(width);
  TextTensor pieces;
  pieces.offsets = op.CallSized(names::kTextSplitOffsets, arguments, attributes, kInt64,
                                op.Apply(names::kAdd, total, op.IntsValue({1})));
  pieces.bytes =
      op.CallSized(names::kTextSplit, x.arguments(), attributes, kUInt8, LengthOf(op, pieces.offsets));
  Value* numbers = op.CallSized(names::kArange, {op.IntValue(0), op.Reshape(total, {}), op.IntValue(1)}, {},
                                kInt64, total);
  const int rank = x.positions->type.rank() + 1;
  pieces.positions =
      op.ReshapeTo(numbers, rank == 1 ? width : ConcatTo(op, op.DimsValue(dims), width, 0), rank);
  SetTexts(op, 0, pieces);
  op.Set(1, counts);
  return {};
}

// x without the strings that `keep`, bool[count], says no of; an empty string if none is left.
TextTensor Kept(Op& op, const TextTensor& x, Value* keep) {
  Value* one = op.IntsValue({0});
  Value* kept = ConcatTo(op, op.Cast(keep, kInt64), one, 0);
  Value* none = op.Compare(names::kEqual, op.Reduce(names::kReduceMax, kept, {0}, true), one);
  // The empty string is one more of the list.
  TextTensor left = x;
  left.offsets = ConcatTo(op, x.offsets, LengthOf(op, x.offsets), 0);
  Value* positions = ConcatTo(op, x.positions, op.DimsValue({x.offsets->type.dims[0] - DimExpr(1)}), 0);
  Value* condition = ConcatTo(op, keep, none, 0);
  left.positions = op.CallShaped(names::kCompress, {positions, condition}, {}, kInt64, Op::AllOpen(1),
                                 {names::kShapeCompress, {positions, condition}, {}});
  return left;
}

// At least 0 for strings that are one of the words but for the case of their letters, else -1.
Value* FoundInAnyCase(Op& op, const TextTensor& x, const Strings& words) {
  const Attributes lower = {{"action", std::string("LOWER")}};
  const auto lower_case = [&](const TextTensor& texts) {
    return NewTexts(op, names::kTextChangeCase, texts.arguments(), lower, texts.positions->type.dims);
  };
  const TextTensor keys = lower_case(ConstantTexts(op, words));
  std::vector<Value*> arguments = lower_case(x).arguments();
  arguments.push_back(keys.offsets);
  arguments.push_back(keys.bytes);
  return op.Call(names::kTextFind, arguments, {{"sorted", std::int64_t{0}}}, x.positions->type);
}

Status LowerStringNormalizer(Op& op, const Operator& /*row*/) {
  if (Status strings = AllStrings(op); !strings) return strings;
  TextTensor x = TextTensorOf(op, op.in(0));
  const Shape dims = x.positions->type.dims;
  const bool is_row = dims.size() == 2;
  if (dims.empty() || dims.size() > 2 || (is_row && dims[0].IsConstant() && !dims[0].Is(1)))
    return op.Invalid("x has shape {}, expected [C] or [1, C]", ShapeText(dims));
  const std::string action = op.String("case_change_action", "NONE");
  if (action != "NONE" && action != "LOWER" && action != "UPPER")
    return op.Invalid("case_change_action is '{}'", action);
  const bool is_sensitive = op.Int("is_case_sensitive", 0) != 0;
  const Strings stopwords = TextsOf(op, "stopwords");
  const DimExpr count = ProductOf(dims);
  x.positions = op.Reshape(x.positions, {count});
  const bool has_strings = count.IsConstant() && !count.Is(0);
  if (!stopwords.empty() || !has_strings) {
    Value* found = is_sensitive ? PositionsInKeys(op, x, stopwords) : FoundInAnyCase(op, x, stopwords);
    x = Kept(op, x, op.Compare(names::kLess, found, op.IntValue(0)));
  }
  if (action != "NONE") {
    x = NewTexts(op, names::kTextChangeCase, x.arguments(), {{"action", action}}, x.positions->type.dims);
  }
  if (is_row) x.positions = op.Reshape(x.positions, {1, x.positions->type.dims[0]});
  SetTexts(op, 0, x);
  return {};
}

Status LowerRegexFullMatch(Op& op, const Operator& row) {
  if (Status strings = AllStrings(op); !strings) return strings;
  const auto& has_kernel = op.lowering().options().has_kernel;
  if (has_kernel && !has_kernel(row.kernel)) return op.Unsupported("the kernel library on RE2 is missing");
  const TextTensor x = TextTensorOf(op, op.in(0));
  op.Set(0, op.Call(row.kernel, x.arguments(), {{"pattern", TextOf(op, "pattern", "")}},
                    TensorOf(kBool8, x.positions->type.dims)));
  return {};
}

}  // namespace

std::span<const Operator> StringOperators() {
  static constexpr Operator kOperators[] = {
      {"RegexFullMatch", 20, 0, 1, 1, "pattern", LowerRegexFullMatch, names::kRe2FullMatch, kTakesStrings},
      {"StringConcat", 20, 0, 2, 2, "", LowerStringConcat, nullptr, kTakesStrings},
      {"StringNormalizer", 10, 0, 1, 1, "~locale case_change_action is_case_sensitive stopwords",
       LowerStringNormalizer, nullptr, kTakesStrings},
      {"StringSplit", 20, 0, 1, 1, "delimiter maxsplit", LowerStringSplit, nullptr, kTakesStrings},
  };
  return kOperators;
}

}  // namespace rewire::compiler
