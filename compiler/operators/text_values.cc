// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/operators/text_values.h"

#include <map>

#include "rewire/compiler/operators/attention_core.h"
#include "rewire/kernels/contract/elementwise.h"
#include "rewire/kernels/contract/indexing.h"
#include "rewire/kernels/contract/movement.h"
#include "rewire/kernels/contract/text.h"

namespace rewire::compiler {

TextTensor TextTensorOf(Op& op, Value* x) {
  const StringList list = op.lowering().ListOf(x);
  return {x, list.offsets, list.bytes};
}

TextTensor ConstantTexts(Op& op, const Strings& strings) {
  Ints positions;
  for (std::size_t i = 0; i < strings.size(); ++i) positions.push_back(static_cast<std::int64_t>(i));
  const StringList list = op.lowering().ConstantList(strings);
  return {op.IntsValue(positions), list.offsets, list.bytes};
}

void SetTexts(Op& op, int output, const TextTensor& texts) {
  op.Set(output, texts.positions);
  if (op.Wants(output)) op.lowering().strings().Set(texts.positions, StringList{texts.offsets, texts.bytes});
}

Value* LengthOf(Op& op, Value* offsets) {
  return op.Call(names::kGather, {offsets, op.IntsValue({-1})}, {{"axis", std::int64_t{0}}},
                 TensorOf(kInt64, {1}));
}

TextTensor NewTexts(Op& op, const std::string& kernel, const std::vector<Value*>& arguments,
                    const Attributes& attributes, const Shape& dims) {
  const DimExpr count = ProductOf(dims);
  Value* offsets =
      op.Call(kernel + "_offsets", arguments, attributes, TensorOf(kInt64, {count + DimExpr(1)}));
  Value* bytes = op.CallSized(kernel, arguments, attributes, kUInt8, LengthOf(op, offsets));
  return {op.Reshape(CountTo(op, count), dims), offsets, bytes};
}

TextTensor ExpandedTexts(Op& op, const TextTensor& texts, const Shape& dims) {
  TextTensor expanded = texts;
  if (ShapeText(texts.positions->type.dims) != ShapeText(dims))
    expanded.positions = op.Call(names::kExpand, {texts.positions}, {}, TensorOf(kInt64, dims));
  return expanded;
}

Value* PositionsInKeys(Op& op, const TextTensor& texts, const Strings& keys) {
  std::map<std::string, std::int64_t> last;  // in the order of bytes, as the kernel wants them
  for (std::size_t i = 0; i < keys.size(); ++i) last[keys[i]] = static_cast<std::int64_t>(i);
  Strings sorted;
  Ints places = {-1};  // of a string that is not found
  for (const auto& [key, place] : last) {
    sorted.push_back(key);
    places.push_back(place);
  }
  const StringList list = op.lowering().ConstantList(sorted);
  Value* found =
      op.Call(names::kTextFind, {texts.positions, texts.offsets, texts.bytes, list.offsets, list.bytes}, {},
              texts.positions->type);
  return op.Call(names::kGather, {op.IntsValue(places), op.Apply(names::kAdd, found, op.IntValue(1))},
                 {{"axis", std::int64_t{0}}}, texts.positions->type);
}

JoinedTexts JoinTexts(Op& op, const std::vector<Value*>& values) {
  const StringTables& tables = op.lowering().strings();
  JoinedTexts joined;
  bool all_known = true;
  for (const Value* value : values) all_known = all_known && tables.Find(value) != nullptr;
  if (all_known) {
    StringPositions list;
    for (Value* value : values) {
      Ints places;
      for (const std::string& text : *tables.Find(value)) places.push_back(list.Of(text));
      joined.positions.push_back(
          op.Call(names::kGather, {op.IntsValue(places), value}, {{"axis", std::int64_t{0}}}, value->type));
    }
    joined.strings = list.Take();
    return joined;
  }
  std::vector<Value*> offsets, bytes;
  DimExpr count = 0, length = 0;
  for (Value* value : values) {
    const TextTensor texts = TextTensorOf(op, value);
    const DimExpr strings = texts.offsets->type.dims[0] - DimExpr(1);
    // The last offset of a list is the first one of the next.
    Value* begins = SliceOf(op, texts.offsets, 0, 0, strings);
    offsets.push_back(length.Is(0) ? begins : op.Apply(names::kAdd, begins, DimValue(op, length)));
    joined.positions.push_back(count.Is(0) ? value : op.Apply(names::kAdd, value, DimValue(op, count)));
    bytes.push_back(texts.bytes);
    count = count + strings;
    length = length + texts.bytes->type.dims[0];
  }
  offsets.push_back(op.DimsValue({length}));
  joined.offsets = op.Concat(offsets, 0);
  joined.bytes = op.Concat(bytes, 0);
  return joined;
}

void SetJoined(Op& op, int output, Value* positions, const JoinedTexts& list) {
  op.Set(output, positions);
  if (!op.Wants(output)) return;
  if (list.strings)
    op.lowering().strings().Set(positions, *list.strings);
  else
    op.lowering().strings().Set(positions, StringList{list.offsets, list.bytes});
}

}  // namespace rewire::compiler
