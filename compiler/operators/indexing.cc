// SPDX-License-Identifier: Apache-2.0
// Operators that pick elements by index, order or condition.
#include "rewire/kernels/contract/indexing.h"
#include "rewire/compiler/ir/half.h"
#include "rewire/compiler/lower/registry.h"
#include "rewire/compiler/operators/text_values.h"
#include "rewire/kernels/contract/elementwise.h"
#include "rewire/kernels/contract/indexing_attributes.h"
#include "rewire/kernels/contract/movement.h"
#include "rewire/kernels/contract/reduction.h"
#include "rewire/kernels/contract/text.h"

namespace rewire::compiler {
namespace {

Status LowerGather(Op& op, const Operator& row) {
  Value* x = op.in(0);
  Value* indices = op.in(1);
  Result<int> axis = op.Axis(op.Int("axis", 0), x->type.rank());
  if (!axis) return Forward(axis);
  Shape dims;
  if (Status fits = contract::GatheredSizes(x->type.dims, indices->type.dims, *axis, &dims, op.ShapeError());
      !fits)
    return fits;
  Value* result = op.Call(row.kernel, {x, indices}, {{"axis", std::int64_t{*axis}}},
                          TensorOf(x->type.dtype, std::move(dims)));
  const std::optional<Shape> elements = KnownElements(x);
  const std::optional<Ints> picks = KnownInts(indices);
  if (elements && picks && !result->IsConstant() && x->type.rank() == 1 && indices->type.rank() <= 1) {
    Shape picked;
    const auto size = static_cast<std::int64_t>(elements->size());
    for (const std::int64_t pick : *picks) {
      if (pick < -size || pick >= size) return op.Invalid("index {} of {} elements", pick, size);
      picked.push_back((*elements)[static_cast<std::size_t>(pick < 0 ? pick + size : pick)]);
    }
    SetElements(result, std::move(picked));
  }
  op.Set(0, result);
  return {};
}

Status LowerGatherElements(Op& op, const Operator& row) {
  op.Set(0, op.Call(row.kernel, {op.in(0), op.in(1)}, {{"axis", op.Int("axis", 0)}},
                    TensorOf(op.in(0)->type.dtype, op.in(1)->type.dims)));
  return {};
}

Status LowerGatherND(Op& op, const Operator& row) {
  Value* x = op.in(0);
  const Shape& indices = op.in(1)->type.dims;
  const std::int64_t batch = op.Int("batch_dims", 0);
  const auto width = indices.empty() ? 0 : indices.back().constant();
  if (!width) return op.Unsupported("the length of index tuples is not known");
  Shape dims;
  if (Status fits = contract::SlicesSizes(x->type.dims, indices, batch, *width, &dims, op.ShapeError());
      !fits)
    return fits;
  op.Set(0, op.Call(row.kernel, {x, op.in(1)}, {{"batch_dims", batch}},
                    TensorOf(x->type.dtype, std::move(dims))));
  return {};
}

// The dtype in which the kernels reduce: f32 f64 i64 i32 i8 u8.
DLDataType ReducedAs(DLDataType dtype) {
  if (IsHalf(dtype)) return kFloat32;
  if (dtype.code == kBool) return kUInt8;
  const bool is_integer = dtype.code == kInt || dtype.code == kUInt;
  if (is_integer && dtype.bits == 16) return kInt32;
  return dtype.code == kUInt && dtype.bits >= 32 ? kInt64 : dtype;
}

// The reduction of a type, in the dtype of ReducedAs. Bools are 0 and 1: a sum is true if any term is, and a
// product if all factors are.
std::string ReductionOf(DLDataType dtype, const std::string& reduction) {
  if (dtype.code != kBool) return reduction;
  if (reduction == "add") return "max";
  return reduction == "mul" ? "min" : reduction;
}

// Strings among those of another list.
Status LowerScatterOfTexts(Op& op, const Operator& row, Attributes attributes) {
  const StringTables& strings = op.lowering().strings();
  if (strings.Has(op.in(0)) != strings.Has(op.in(2)) || strings.Has(op.in(1)))
    return op.Invalid("some inputs are strings, others are not");
  if (const std::string reduction = op.String("reduction", "none"); reduction != "none")
    return op.Unsupported("strings under the reduction '{}'", reduction);
  const JoinedTexts joined = JoinTexts(op, {op.in(0), op.in(2)});
  Value* positions = op.Call(row.kernel, {joined.positions[0], op.in(1), joined.positions[1]},
                             std::move(attributes), TensorOf(kInt64, op.in(0)->type.dims));
  SetJoined(op, 0, positions, joined);
  return {};
}

Status LowerScatter(Op& op, const Operator& row) {
  const std::string asked = op.String("reduction", "none");
  Type type = op.in(0)->type;
  const DLDataType given = type.dtype;
  const bool reduces = asked != "none";
  const std::string reduction = reduces ? ReductionOf(given, asked) : asked;
  Attributes attributes = {{"reduction", reduction}};
  if (op.type() != "ScatterND") attributes.push_back({"axis", op.Int("axis", 0)});
  for (int i = 0; i < 3; ++i) {
    if (op.lowering().strings().Has(op.in(i))) return LowerScatterOfTexts(op, row, std::move(attributes));
  }
  if (reduces) type.dtype = ReducedAs(given);
  // i64 orders the upper half of u64 before the lower one. With the highest bit flipped, it orders as u64
  // does.
  const bool flips = given.code == kUInt && given.bits == 64 && (reduction == "min" || reduction == "max");
  const auto flip = [&](Value* x) {
    return flips ? op.Apply(names::kBitXor, x, op.Scalar(kInt64, -0x1p63)) : x;
  };
  std::vector<Value*> inputs = op.Arguments(0, 2);
  for (const std::size_t i : {0, 2}) inputs[i] = flip(op.Cast(inputs[i], type.dtype));
  op.Set(0, op.Cast(flip(op.Call(row.kernel, inputs, std::move(attributes), type)), given));
  return {};
}

Status LowerOneHot(Op& op, const Operator& row) {
  Value* indices = op.in(0);
  Value* values = op.in(2);
  Result<int> axis = op.Axis(op.Int("axis", -1), indices->type.rank() + 1);
  if (!axis) return Forward(axis);
  const Attributes attributes = {{"axis", std::int64_t{*axis}}};
  Op::OpenShape known;
  Status fits = contract::OneHotSizes(indices->type.dims, *axis, std::nullopt, &known, op.ShapeError());
  if (!fits) return fits;
  op.Set(0, op.CallShaped(row.kernel, {indices, values}, attributes, values->type.dtype, known,
                          {names::kShapeOneHot, {op.ShapeOf(indices), op.in(1)}, attributes}));
  return {};
}

Status LowerTopK(Op& op, const Operator& row) {
  Value* x = op.in(0);
  Result<int> axis = op.Axis(op.Int("axis", -1), x->type.rank());
  if (!axis) return Forward(axis);
  Value* count = op.opset() < 10 ? op.IntsValue({op.Int("k", 1)}) : op.in(1);
  if (count == nullptr) return op.Invalid("k is missing");
  Op::KernelCall call;
  call.kernel = row.kernel;
  call.inputs = {x};
  call.attributes = {
      {"axis", std::int64_t{*axis}}, {"largest", op.Int("largest", 1)}, {"sorted", op.Int("sorted", 1)}};
  std::optional<DimExpr> k;
  if (const std::optional<Shape> known = KnownElements(count); known && known->size() == 1) {
    k = (*known)[0];
  } else {
    Value* shape = op.ShapeValue({names::kShapeTopK, {op.ShapeOf(x), count}, {{"axis", std::int64_t{*axis}}}},
                                 x->type.rank());
    k = DimExpr::Symbol(op.lowering().graph().FreshSymbol("k"));
    call.shapes = {shape, shape};
  }
  Shape dims;
  if (Status fits = contract::TopSizes(x->type.dims, *axis, *k, &dims, op.ShapeError()); !fits) return fits;
  call.outputs = {TensorOf(x->type.dtype, dims), TensorOf(kInt64, dims)};
  const std::vector<Value*> outputs = op.Call(std::move(call));
  op.Set(0, outputs[0]);
  op.Set(1, outputs[1]);
  return {};
}

Status LowerNonZero(Op& op, const Operator& row) {
  Value* x = op.in(0);
  // A row for each axis; of a scalar the kernel says how many.
  Op::OpenShape known = Op::AllOpen(2);
  if (x->type.rank() > 0) known[0] = x->type.rank();
  op.Set(0, op.CallShaped(row.kernel, {x}, {}, kInt64, known, {names::kShapeNonZero, {x}, {}}));
  return {};
}

Status LowerCompress(Op& op, const Operator& row) {
  Value* x = op.in(0);
  Attributes attributes;
  if (op.HasAttribute("axis")) attributes.push_back({"axis", op.Int("axis", 0)});
  const Op::OpenShape known =
      op.HasAttribute("axis") ? Op::Open(x->type.dims, {op.Int("axis", 0)}) : Op::AllOpen(1);
  op.Set(0, op.CallShaped(row.kernel, {x, op.in(1)}, attributes, x->type.dtype, known,
                          {names::kShapeCompress, {x, op.in(1)}, attributes}));
  return {};
}

// The slices kept have x's shape but for the axis; the other outputs are as long as that.
Status LowerUnique(Op& op, const Operator& row) {
  const bool are_strings = op.lowering().strings().Has(op.in(0));
  // Equal strings have equal ranks.
  Value* x = op.in(0);
  if (are_strings) x = op.Call(names::kTextRank, TextTensorOf(op, x).arguments(), {}, x->type);
  Graph& graph = op.lowering().graph();
  Attributes attributes = {{"sorted", op.Int("sorted", 1)}};
  Shape dims(1);
  std::size_t along = 0;
  DimExpr length = ProductOf(x->type.dims);
  if (op.HasAttribute("axis")) {
    Result<int> axis = op.Axis(op.Int("axis", 0), x->type.rank());
    if (!axis) return Forward(axis);
    attributes.push_back({"axis", std::int64_t{*axis}});
    dims = x->type.dims;
    along = static_cast<std::size_t>(*axis);
    length = dims[along];
  }
  Value* count = op.ShapeValue({names::kShapeUnique, {x}, attributes}, 1);
  const std::optional<Shape> known = KnownElements(count);
  dims[along] = known ? (*known)[0] : DimExpr::Symbol(graph.FreshSymbol("unique"));
  Op::KernelCall call;
  call.kernel = row.kernel;
  call.inputs = {x};
  call.attributes = attributes;
  call.outputs = {TensorOf(x->type.dtype, dims), TensorOf(kInt64, {dims[along]}), TensorOf(kInt64, {length}),
                  TensorOf(kInt64, {dims[along]})};
  if (!known) {
    // The count between the dimensions before and after.
    Value* shape = count;
    if (dims.size() > 1) {
      std::vector<Value*> parts;
      if (along > 0)
        parts.push_back(op.DimsValue(Shape(dims.begin(), dims.begin() + static_cast<std::ptrdiff_t>(along))));
      parts.push_back(count);
      if (along + 1 < dims.size()) {
        parts.push_back(
            op.DimsValue(Shape(dims.begin() + static_cast<std::ptrdiff_t>(along) + 1, dims.end())));
      }
      shape = op.Concat(parts, 0);
    }
    call.shapes = {shape, count, nullptr, count};
  }
  const std::vector<Value*> outputs = op.Call(std::move(call));
  for (std::size_t i = 0; i < outputs.size(); ++i) op.Set(static_cast<int>(i), outputs[i]);
  if (!are_strings) return {};
  // The strings are where their ranks are first.
  Value* from = op.HasAttribute("axis") ? op.in(0) : op.Reshape(op.in(0), {length});
  Value* strings = op.Call(names::kGather, {from, outputs[1]}, {{"axis", static_cast<std::int64_t>(along)}},
                           outputs[0]->type);
  op.Set(0, strings);
  op.lowering().strings().Copy(op.in(0), strings);
  return {};
}

Status LowerRunning(Op& op, const Operator& row) {
  op.Set(0,
         op.Call(row.kernel, {op.in(0), op.in(1)},
                 {{"exclusive", op.Int("exclusive", 0)}, {"reverse", op.Int("reverse", 0)}}, op.in(0)->type));
  return {};
}

}  // namespace

std::span<const Operator> IndexingOperators() {
  static constexpr Operator kOperators[] = {
      {"Compress", 9, 0, 2, 2, "axis", LowerCompress, names::kCompress, kMovesStrings},
      {"CumProd", 26, 0, 2, 2, "exclusive reverse", LowerRunning, names::kCumProd},
      {"CumSum", 11, 0, 2, 2, "exclusive reverse", LowerRunning, names::kCumSum, kKeepsRank},
      {"Gather", 1, 0, 2, 2, "axis", LowerGather, names::kGather, kMovesStrings},
      {"GatherElements", 11, 0, 2, 2, "axis", LowerGatherElements, names::kGatherElements, kMovesStrings},
      {"GatherND", 11, 0, 2, 2, "batch_dims", LowerGatherND, names::kGatherNd, kMovesStrings},
      {"NonZero", 9, 0, 1, 1, "", LowerNonZero, names::kNonZero},
      {"OneHot", 9, 0, 3, 3, "axis", LowerOneHot, names::kOneHot},
      {"Scatter", 9, 0, 3, 3, "axis", LowerScatter, names::kScatterElements, kTakesStrings},
      {"ScatterElements", 11, 0, 3, 3, "axis reduction", LowerScatter, names::kScatterElements,
       kTakesStrings},
      {"ScatterND", 11, 0, 3, 3, "reduction", LowerScatter, names::kScatterNd, kTakesStrings},
      {"TopK", 1, 0, 1, 2, "axis k<10 largest sorted", LowerTopK, names::kTopK},
      {"Unique", 11, 0, 1, 1, "axis sorted", LowerUnique, names::kUnique, kTakesStrings},
  };
  return kOperators;
}

}  // namespace rewire::compiler
