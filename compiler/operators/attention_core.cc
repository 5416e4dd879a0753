// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/operators/attention_core.h"
#include "rewire/kernels/contract/attention.h"
#include "rewire/kernels/contract/elementwise.h"
#include "rewire/kernels/contract/generator.h"
#include "rewire/kernels/contract/indexing.h"
#include "rewire/kernels/contract/movement.h"
#include "rewire/kernels/contract/normalization.h"
#include "rewire/kernels/contract/product.h"
#include "rewire/kernels/contract/reduction.h"

#include <cmath>
#include <limits>
#include <utility>

namespace rewire::compiler {
namespace {

// The product of the last two axes. The others broadcast.
Value* BatchedMatMul(Op& op, Value* a, Value* b, Shape dims) {
  return op.Call(names::kMatMul, {a, b}, {}, TensorOf(a->type.dtype, std::move(dims)));
}

// 1 / sqrt(dim), of rank 0.
Value* InverseRoot(Op& op, const DimExpr& dim, DLDataType dtype) {
  if (const std::optional<std::int64_t> size = dim.constant()) {
    return op.Scalar(dtype, 1 / std::sqrt(static_cast<double>(*size)));
  }
  return op.Unary(names::kReciprocal, op.Unary(names::kSqrt, op.Cast(DimValue(op, dim), dtype)));
}

Status CheckShapes(const Op& op, const AttentionInputs& inputs) {
  for (const Value* tensor : {inputs.q, inputs.k, inputs.v}) {
    if (tensor->type.rank() != 4)
      return op.Invalid("'{}' has shape {}, expected [batch, heads, length, size]", tensor->name,
                        ShapeText(tensor->type.dims));
  }
  const Shape &q = inputs.q->type.dims, &k = inputs.k->type.dims, &v = inputs.v->type.dims;
  const auto differ = [](const DimExpr& a, const DimExpr& b) {
    return a.IsConstant() && b.IsConstant() && !(a == b);
  };
  if (differ(q[0], k[0]) || differ(k[0], v[0]) || differ(q[3], k[3]) || differ(k[1], v[1]) ||
      differ(k[2], v[2])) {
    return op.Invalid("queries {} do not fit keys {} and values {}", ShapeText(q), ShapeText(k),
                      ShapeText(v));
  }
  return {};
}

// How many heads of q share one of k. The run checks open ones.
Result<DimExpr> GroupSize(const Op& op, const DimExpr& of_q, const DimExpr& of_k) {
  if (of_q == of_k) return DimExpr(1);
  const std::optional<std::int64_t> q = of_q.constant(), k = of_k.constant();
  if (q && k && (*k < 1 || *q % *k != 0))
    return op.Invalid("{} heads of queries, expected a multiple of the {} heads of keys", *q, *k);
  return DimExpr::FloorDiv(of_q, of_k);
}

// x [.., size] as two halves, or as its even and odd elements.
std::pair<Value*, Value*> Pairs(Op& op, Value* x, bool interleaved) {
  const int last = x->type.rank() - 1;
  const Shape dims = x->type.dims;
  const DimExpr half = DimExpr::FloorDiv(dims.back(), 2);
  if (!interleaved) return {SliceOf(op, x, last, 0, half), SliceOf(op, x, last, half, dims.back())};
  Shape pairs = dims, single = dims;
  pairs.back() = single.back() = half;
  pairs.emplace_back(2);
  Value* split = op.Reshape(x, pairs);
  return {op.Reshape(SliceOf(op, split, last + 1, 0, 1), single),
          op.Reshape(SliceOf(op, split, last + 1, 1, 2), single)};
}

Value* JoinPairs(Op& op, Value* a, Value* b, bool interleaved) {
  const int last = a->type.rank() - 1;
  if (!interleaved) return ConcatTo(op, a, b, last);
  Shape dims = a->type.dims, single = dims;
  single.emplace_back(1);
  dims.back() = dims.back() * DimExpr(2);
  return op.Reshape(ConcatTo(op, op.Reshape(a, single), op.Reshape(b, single), last + 1), dims);
}

bool IsWide(DLDataType dtype) { return dtype.bits > 32; }

// i64 [batch] of [batch, 1, 1, 1]; a scalar stays one.
Value* OfBatch(Op& op, Value* counts) {
  return counts->type.rank() <= 1 ? counts : op.Reshape(counts, {counts->type.dims[0]});
}

// The kernel computes in f32, and nothing but y.
bool SuitsKernel(const AttentionInputs& inputs) {
  const bool wide = IsWide(inputs.q->type.dtype) || (inputs.softmax_dtype && IsWide(*inputs.softmax_dtype));
  const bool shaped = (inputs.bias == nullptr || inputs.bias->type.rank() <= 4) &&
                      (inputs.allowed == nullptr || inputs.allowed->type.rank() <= 4);
  return !wide && shaped && !inputs.needs_scores && !inputs.change_scores && !inputs.change_probabilities;
}

AttentionOutputs CallKernel(Op& op, const AttentionInputs& inputs) {
  const DLDataType dtype = inputs.q->type.dtype;
  const Shape &q = inputs.q->type.dims, &v = inputs.v->type.dims;
  Value* bias = inputs.bias != nullptr ? op.Cast(inputs.bias, kFloat32) : nullptr;
  if (inputs.allowed != nullptr) {
    Value* masked = MaskBias(op, inputs.allowed, kFloat32);
    bias = bias != nullptr ? op.Apply(names::kAdd, bias, masked) : masked;
  }
  const PositionMask positions = inputs.positions.value_or(PositionMask());
  const bool by_position = positions.left >= 0 || positions.right >= 0;
  std::vector<Value*> optional = {
      by_position && positions.offset != nullptr ? OfBatch(op, positions.offset) : nullptr,
      positions.lengths != nullptr ? OfBatch(op, positions.lengths) : nullptr, bias};
  while (!optional.empty() && optional.back() == nullptr) optional.pop_back();
  const bool joined = inputs.joined_q != nullptr;
  std::vector<Value*> arguments = {joined ? inputs.joined_q : inputs.q, inputs.k, inputs.v};
  for (Value* each : optional) arguments.push_back(each != nullptr ? each : op.Missing(kInt64));
  Attributes attributes;
  if (inputs.scale) attributes.push_back({"scale", *inputs.scale});
  if (inputs.softcap > 0) attributes.push_back({"softcap", inputs.softcap});
  if (positions.left >= 0) attributes.push_back({"left", positions.left});
  if (positions.right >= 0) attributes.push_back({"right", positions.right});
  AttentionOutputs outputs;
  (joined ? outputs.joined : outputs.y) =
      op.Call(names::kAttention, std::move(arguments), std::move(attributes),
              TensorOf(dtype, contract::AttendedSizes<Shape>(q[0], q[1], q[2], v[3], joined)));
  return outputs;
}

// Rows of a rotation's table for its positions, [batch, 1, length, turned / 2].
Value* RowsOf(Op& op, Value* table, Value* positions) {
  if (positions != nullptr) {
    Shape dims = positions->type.dims;
    dims.push_back(table->type.dims.back());
    table = op.Call(names::kGather, {table, positions}, {{"axis", std::int64_t{0}}},
                    TensorOf(table->type.dtype, std::move(dims)));
  }
  const Shape& dims = table->type.dims;
  return op.Reshape(table, {dims[0], 1, dims[1], dims[2]});
}

// Rotates x [batch, heads, length, size] by products and sums.
Value* RotateByParts(Op& op, const Rotation& is, Value* x) {
  Value* cosines = RowsOf(op, is.cosines, is.positions);
  Value* sines = RowsOf(op, is.sines, is.positions);
  const DimExpr size = x->type.dims[3];
  const auto [a, b] = Pairs(op, SliceOf(op, x, 3, 0, is.turned), is.interleaved);
  Value* real = op.Apply(names::kSub, op.Apply(names::kMul, a, cosines), op.Apply(names::kMul, b, sines));
  Value* imaginary =
      op.Apply(names::kAdd, op.Apply(names::kMul, a, sines), op.Apply(names::kMul, b, cosines));
  Value* y = JoinPairs(op, real, imaginary, is.interleaved);
  return is.turned == size ? y : ConcatTo(op, y, SliceOf(op, x, 3, is.turned, size), 3);
}

// Null if the kernel does not take the tensors.
Value* RotateByKernel(Op& op, const Rotation& is, Value* x, std::int64_t heads) {
  const bool joined = x->type.rank() == 3;
  if (IsWide(x->type.dtype) || (joined && heads < 1)) return nullptr;
  std::vector<Value*> arguments = {x};
  const DimExpr half = DimExpr::FloorDiv(is.turned, 2);
  for (Value* table : {is.cosines, is.sines}) {
    Shape dims = table->type.dims;
    if (!(dims.back() == half)) {
      if (dims.back().IsConstant() && half.IsConstant()) return nullptr;
      // The kernel turns as many elements as its tables say. The run checks that these are the ones asked
      // for.
      dims.back() = half;
      table = op.Reshape(table, dims);
    }
    arguments.push_back(table);
  }
  if (is.positions != nullptr) arguments.push_back(op.Cast(is.positions, kInt64));
  Attributes attributes;
  if (joined) attributes.push_back({"heads", heads});
  if (is.interleaved) attributes.push_back({"interleaved", std::int64_t{1}});
  return op.Call(names::kRotary, std::move(arguments), std::move(attributes), x->type);
}

}  // namespace

Value* DimValue(Op& op, const DimExpr& dim) { return op.Reshape(op.DimsValue({dim}), {}); }

Value* CountTo(Op& op, const DimExpr& count) {
  return op.Call(names::kArange, {op.IntValue(0), DimValue(op, count), op.IntValue(1)}, {},
                 TensorOf(kInt64, {count}));
}

Value* MaskBias(Op& op, Value* allowed, DLDataType dtype) {
  Value* nothing = op.Scalar(dtype, 0);
  Value* least = op.Scalar(dtype, -std::numeric_limits<double>::infinity());
  return op.Call(names::kWhere, {allowed, nothing, least}, {}, TensorOf(dtype, allowed->type.dims));
}

Value* AndOf(Op& op, Value* a, Value* b) {
  if (a == nullptr || b == nullptr) return a != nullptr ? a : b;
  return op.Compare(names::kAnd, a, b);
}

Value* AllowedKeys(Op& op, const PositionMask& mask) {
  Value* allowed = nullptr;
  if (mask.left >= 0 || mask.right >= 0) {
    Value* position = op.Reshape(CountTo(op, mask.queries), {mask.queries, 1});
    if (mask.offset != nullptr) position = op.Apply(names::kAdd, position, mask.offset);
    // How far a key lies before the query.
    Value* distance = op.Apply(names::kSub, position, CountTo(op, mask.keys));
    if (mask.right >= 0) allowed = op.Compare(names::kGreaterEqual, distance, op.IntValue(-mask.right));
    if (mask.left >= 0)
      allowed = AndOf(op, allowed, op.Compare(names::kLessEqual, distance, op.IntValue(mask.left)));
  }
  if (mask.lengths == nullptr) return allowed;
  return AndOf(op, allowed, op.Compare(names::kLess, CountTo(op, mask.keys), mask.lengths));
}

Value* ConcatTo(Op& op, Value* a, Value* b, int axis) { return a == nullptr ? b : op.Concat({a, b}, axis); }

Value* SliceOf(Op& op, Value* x, int axis, const DimExpr& start, const DimExpr& end) {
  Type type = x->type;
  type.dims[static_cast<std::size_t>(axis)] = end - start;
  if (start.IsConstant() && end.IsConstant()) {
    return op.Call(names::kSlice, {x},
                   {{"starts", Ints{*start.constant()}},
                    {"ends", Ints{*end.constant()}},
                    {"axes", Ints{axis}},
                    {"steps", Ints{1}}},
                   std::move(type));
  }
  return op.Call(names::kDynamicSlice, {x, op.DimsValue({start}), op.DimsValue({end}), op.IntsValue({axis})},
                 {}, std::move(type));
}

Value* SplitInto(Op& op, Value* x, const DimExpr& heads, const DimExpr& size) {
  const Shape& dims = x->type.dims;
  return op.Transpose(op.Reshape(x, {dims[0], dims[1], heads, size}), {0, 2, 1, 3});
}

Result<Value*> SplitHeads(Op& op, Value* x, std::int64_t heads) {
  const Shape& dims = x->type.dims;
  if (dims.size() != 3)
    return op.Invalid("'{}' has shape {}, expected [batch, length, heads * size]", x->name, ShapeText(dims));
  if (heads < 1 || (dims[2].IsConstant() && *dims[2].constant() % heads != 0)) {
    return op.Invalid("'{}' has shape {}, which {} heads do not divide", x->name, ShapeText(dims), heads);
  }
  return SplitInto(op, x, heads, DimExpr::FloorDiv(dims[2], heads));
}

Value* JoinHeads(Op& op, Value* x) {
  const Shape dims = x->type.dims;
  return op.Reshape(op.Transpose(x, {0, 2, 1, 3}), {dims[0], dims[2], dims[1] * dims[3]});
}

Value* Rotation::Of(Op& op, Value* x, Value* apart, std::int64_t heads) const {
  if (Value* y = RotateByKernel(op, *this, x, heads)) return y;
  Value* y = RotateByParts(op, *this, apart);
  return x == apart ? y : JoinHeads(op, y);
}

Value* JoinedOf(Op& op, const AttentionOutputs& outputs) {
  return outputs.joined != nullptr ? outputs.joined : JoinHeads(op, outputs.y);
}

Value* AppendToCache(Op& op, Value* cache, Value* x, Value* begin) {
  Value* appended = op.Call(names::kCacheAppend, {cache, x, begin}, {}, cache->type);
  if (appended->producer != nullptr) appended->producer->flags |= kKernelInPlace;
  return appended;
}

Result<AttentionOutputs> BuildAttention(Op& op, const AttentionInputs& inputs) {
  if (Status fits = CheckShapes(op, inputs); !fits) return Forward(fits);
  const DLDataType given = inputs.q->type.dtype;
  // 16 bits are too few for sums of many products.
  const DLDataType dtype = given.bits < 32 ? kFloat32 : given;
  const Shape q = inputs.q->type.dims, k = inputs.k->type.dims, v = inputs.v->type.dims;
  const Result<DimExpr> group = GroupSize(op, q[1], k[1]);
  if (!group) return Forward(group);
  if (SuitsKernel(inputs)) return CallKernel(op, inputs);
  Value* allowed = inputs.allowed;
  if (inputs.positions) allowed = AndOf(op, AllowedKeys(op, *inputs.positions), allowed);
  Value* scale = inputs.scale ? op.Scalar(dtype, *inputs.scale) : InverseRoot(op, q[3], dtype);
  Value* queries = op.Apply(names::kMul, op.Cast(inputs.q, dtype), scale);
  Value* keys = op.Transpose(op.Cast(inputs.k, dtype), {0, 1, 3, 2});
  Value* values = op.Cast(inputs.v, dtype);
  const Shape all = {q[0], q[1], q[2], k[2]};
  Shape grouped = all, result = {q[0], q[1], q[2], v[3]};
  if (!group->Is(1)) {
    // Heads that share keys become an axis of their own, along which keys and values broadcast.
    const auto add_axis = [](Shape dims, std::size_t at, const DimExpr& size) {
      dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(at), size);
      return dims;
    };
    queries = op.Reshape(queries, add_axis({q[0], k[1], q[2], q[3]}, 2, *group));
    keys = op.Reshape(keys, add_axis(keys->type.dims, 2, 1));
    values = op.Reshape(values, add_axis(v, 2, 1));
    grouped = add_axis({q[0], k[1], q[2], k[2]}, 2, *group);
    result = add_axis({q[0], k[1], q[2], v[3]}, 2, *group);
  }
  AttentionOutputs outputs;
  outputs.scores = op.Reshape(BatchedMatMul(op, queries, keys, grouped), all);
  outputs.capped = outputs.scores;
  if (inputs.softcap > 0) {
    Value* cap = op.Scalar(dtype, inputs.softcap);
    outputs.capped =
        op.Apply(names::kMul, op.Unary(names::kTanh, op.Apply(names::kDiv, outputs.scores, cap)), cap);
  }
  Value* bias = inputs.bias != nullptr ? op.Cast(inputs.bias, dtype) : nullptr;
  if (allowed != nullptr) {
    Value* masked = MaskBias(op, allowed, dtype);
    bias = bias != nullptr ? op.Apply(names::kAdd, bias, masked) : masked;
  }
  outputs.biased = bias != nullptr ? op.Apply(names::kAdd, outputs.capped, bias) : outputs.capped;
  const DLDataType precise =
      inputs.softmax_dtype && inputs.softmax_dtype->bits > dtype.bits ? *inputs.softmax_dtype : dtype;
  Value* logits = op.Cast(outputs.biased, precise);
  if (inputs.change_scores) {
    const Result<Value*> changed = inputs.change_scores(logits);
    if (!changed) return Forward(changed);
    logits = *changed;
  }
  Value* probabilities = op.Call(names::kSoftmax, {logits}, {{"axis", std::int64_t{3}}}, logits->type);
  if (bias != nullptr && bias->type.rank() > 0) {
    // The softmax of a row of -inf is NaN. Which rows are such is a matter of the bias, as scores may be NaN.
    Value* highest = op.Reduce(names::kReduceMax, bias, {bias->type.rank() - 1}, true);
    Value* none =
        op.Compare(names::kEqual, highest, op.Scalar(dtype, -std::numeric_limits<double>::infinity()));
    probabilities = op.Call(names::kWhere, {none, op.Scalar(precise, 0), probabilities}, {}, logits->type);
  }
  if (inputs.change_probabilities) {
    const Result<Value*> changed = inputs.change_probabilities(probabilities);
    if (!changed) return Forward(changed);
    probabilities = *changed;
  }
  outputs.probabilities = op.Cast(probabilities, dtype);
  Shape shares = grouped;
  Value* y = BatchedMatMul(op, op.Reshape(outputs.probabilities, std::move(shares)), values, result);
  outputs.y = op.Cast(op.Reshape(y, {q[0], q[1], q[2], v[3]}), given);
  for (Value** tensor : {&outputs.scores, &outputs.capped, &outputs.biased, &outputs.probabilities})
    *tensor = op.Cast(*tensor, given);
  return outputs;
}

}  // namespace rewire::compiler
