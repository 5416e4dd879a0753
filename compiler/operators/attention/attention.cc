// SPDX-License-Identifier: Apache-2.0
// Attention, and what stands beside it in language models: rotary positions and caches of keys.
#include <limits>

#include "rewire/compiler/lower/registry.h"
#include "rewire/compiler/operators/attention_core.h"
#include "rewire/kernels/contract/elementwise.h"
#include "rewire/kernels/contract/indexing.h"
#include "rewire/kernels/contract/movement.h"

namespace rewire::compiler {
namespace {

// A mask may have fewer columns than there are keys: the keys without one are not allowed.
Value* PadMask(Op& op, Value* mask, const DimExpr& keys) {
  Shape dims = mask->type.dims;
  if (dims.empty() || dims.back() == keys) return mask;
  const DimExpr missing = keys - dims.back();
  if (missing.IsConstant() && *missing.constant() <= 0) return mask;
  const double rest = mask->type.dtype == kBool8 ? 0 : -std::numeric_limits<double>::infinity();
  Value* value = op.Scalar(mask->type.dtype, rest);
  const std::size_t rank = dims.size();
  dims.back() = keys;
  if (missing.IsConstant()) {
    Ints pads(2 * rank, 0);
    pads.back() = *missing.constant();
    return op.Call(names::kPad, {mask, value}, {{"pads", pads}, {"mode", std::string("constant")}},
                   TensorOf(mask->type.dtype, std::move(dims)));
  }
  Shape pads(2 * rank, DimExpr(0));
  pads.back() = missing;
  return op.Call(names::kDynamicPad, {mask, op.DimsValue(pads), value}, {{"mode", std::string("constant")}},
                 TensorOf(mask->type.dtype, std::move(dims)));
}

// Q, K and V with an axis of heads. Y is given back in the same form.
struct Heads {
  Value *q, *k, *v;
  Value* joined_q = nullptr;  // if they came as [batch, length, heads * size]
};

Result<Heads> ReadHeads(Op& op) {
  Heads heads = {op.in(0), op.in(1), op.in(2)};
  const std::int64_t of_q = op.Int("q_num_heads", 0), of_kv = op.Int("kv_num_heads", 0);
  if (heads.q->type.rank() != 3) return heads;
  heads.joined_q = heads.q;
  struct Side {
    Value** tensor;
    std::int64_t count;
  };
  for (const Side& side : {Side{&heads.q, of_q}, Side{&heads.k, of_kv}, Side{&heads.v, of_kv}}) {
    Result<Value*> split = SplitHeads(op, *side.tensor, side.count);
    if (!split) return Forward(split);
    *side.tensor = *split;
  }
  return heads;
}

Status CheckCache(const Op& op, const Value* past, const Value* tensor) {
  if (past == nullptr || past->type.rank() == tensor->type.rank()) return {};
  return op.Invalid("the cache '{}' has shape {}, expected rank {}", past->name, ShapeText(past->type.dims),
                    tensor->type.rank());
}

// A dtype that an attribute may name; nothing if it does not.
Result<std::optional<DLDataType>> OptionalDType(const Op& op, const char* name) {
  if (!op.HasAttribute(name)) return std::optional<DLDataType>();
  const Result<DLDataType> dtype = op.DTypeAttribute(name, kFloat32);
  if (!dtype) return Forward(dtype);
  if (!IsFloat(*dtype)) return op.Invalid("{} is {}, expected a float", name, DTypeName(*dtype));
  return std::optional(*dtype);
}

Status LowerAttention(Op& op, const Operator& /*row*/) {
  Result<Heads> heads = ReadHeads(op);
  if (!heads) return Forward(heads);
  Value *mask = op.in(3), *past_key = op.in(4), *past_value = op.in(5), *lengths = op.in(6);
  if ((past_key == nullptr) != (past_value == nullptr))
    return op.Invalid("it has one of past_key and past_value, expected both or none");
  if (lengths != nullptr && past_key != nullptr)
    return op.Invalid("it has both nonpad_kv_seqlen and past_key, expected one of them");
  if (Status fits = CheckCache(op, past_key, heads->k); !fits) return fits;
  if (Status fits = CheckCache(op, past_value, heads->v); !fits) return fits;
  AttentionInputs inputs;
  inputs.q = heads->q;
  inputs.joined_q = heads->joined_q;
  inputs.k = ConcatTo(op, past_key, heads->k, 2);
  inputs.v = ConcatTo(op, past_value, heads->v, 2);
  if (inputs.q->type.rank() != 4 || inputs.k->type.rank() != 4)
    return op.Invalid("Q has rank {} and K {}, expected 3 or 4 for both", op.in(0)->type.rank(),
                      op.in(1)->type.rank());
  if (op.HasAttribute("scale")) inputs.scale = op.Float("scale", 1);
  inputs.softcap = op.Float("softcap", 0);
  const Result<std::optional<DLDataType>> precision = OptionalDType(op, "softmax_precision");
  if (!precision) return Forward(precision);
  inputs.softmax_dtype = *precision;

  PositionMask positions;
  positions.queries = inputs.q->type.dims[2];
  positions.keys = inputs.k->type.dims[2];
  positions.left = op.Int("left_window_size", -1);
  positions.right = op.Int("right_window_size", -1);
  if (positions.left < -1 || positions.right < -1)
    return op.Invalid("the window is {} and {} keys wide, expected at least -1", positions.left,
                      positions.right);
  if (op.Int("is_causal", 0) != 0) positions.right = 0;
  if (lengths != nullptr) {
    if (lengths->type.rank() != 1)
      return op.Invalid("nonpad_kv_seqlen has shape {}, expected [batch]", ShapeText(lengths->type.dims));
    positions.lengths = op.Reshape(op.Cast(lengths, kInt64), {lengths->type.dims[0], 1, 1, 1});
    positions.offset = op.Apply(names::kSub, positions.lengths, DimValue(op, positions.queries));
  } else if (past_key != nullptr) {
    positions.offset = DimValue(op, past_key->type.dims[2]);
  }
  inputs.positions = positions;
  if (mask != nullptr) {
    mask = PadMask(op, mask, positions.keys);
    (mask->type.dtype == kBool8 ? inputs.allowed : inputs.bias) = mask;
  }
  inputs.needs_scores = op.Wants(3);
  const Result<AttentionOutputs> outputs = BuildAttention(op, inputs);
  if (!outputs) return Forward(outputs);
  op.Set(0, heads->joined_q != nullptr ? JoinedOf(op, *outputs) : outputs->y);
  op.Set(1, inputs.k);
  op.Set(2, inputs.v);
  Value* const shown[] = {outputs->scores, outputs->capped, outputs->biased, outputs->probabilities};
  const std::int64_t mode = op.Int("qk_matmul_output_mode", 0);
  if (mode < 0 || mode > 3) return op.Invalid("qk_matmul_output_mode is {}, expected 0 to 3", mode);
  if (inputs.needs_scores) op.Set(3, shown[mode]);
  return {};
}

// Lowers the graph of an attribute, which changes one tensor.
Result<Value*> ChangeBy(Op& op, const onnx::GraphProto& body, Value* x) {
  Result<std::vector<Value*>> results = op.lowering().LowerBody(body, op.scope(), {x});
  if (!results) return Forward(results);
  if (results->size() != 1) return op.Invalid("a graph has {} outputs, expected 1", results->size());
  Value* changed = (*results)[0];
  if (op.lowering().IsPoison(changed)) return op.Unsupported("a node of its graph is not supported");
  if (TypeText(changed->type) != TypeText(x->type))
    return op.Invalid("a graph makes {} of {}", TypeText(changed->type), TypeText(x->type));
  return changed;
}

Status LowerFlexAttention(Op& op, const Operator& /*row*/) {
  AttentionInputs inputs;
  inputs.q = op.in(0);
  inputs.k = op.in(1);
  inputs.v = op.in(2);
  if (op.HasAttribute("scale")) inputs.scale = op.Float("scale", 1);
  const Result<std::optional<DLDataType>> precision = OptionalDType(op, "softmax_precision");
  if (!precision) return Forward(precision);
  inputs.softmax_dtype = *precision;
  if (const onnx::GraphProto* body = op.GraphAttribute("score_mod")) {
    inputs.change_scores = [&op, body](Value* x) { return ChangeBy(op, *body, x); };
  }
  if (const onnx::GraphProto* body = op.GraphAttribute("prob_mod")) {
    inputs.change_probabilities = [&op, body](Value* x) { return ChangeBy(op, *body, x); };
  }
  const Result<AttentionOutputs> outputs = BuildAttention(op, inputs);
  if (!outputs) return Forward(outputs);
  op.Set(0, outputs->y);
  return {};
}

Status LowerRotaryEmbedding(Op& op, const Operator& /*row*/) {
  Value* x = op.in(0);
  const std::int64_t heads = op.Int("num_heads", 0);
  if (x->type.rank() == 3) {
    const Result<Value*> split = SplitHeads(op, x, heads);
    if (!split) return Forward(split);
    x = *split;
  }
  if (x->type.rank() != 4) return op.Invalid("X has shape {}, expected rank 3 or 4", ShapeText(x->type.dims));
  const DimExpr size = x->type.dims[3];
  const std::int64_t given = op.Int("rotary_embedding_dim", 0);
  const DimExpr turned = given > 0 ? DimExpr(given) : size;
  const std::optional<std::int64_t> even = turned.constant(), all = size.constant();
  if ((even && *even % 2 != 0) || (even && all && *even > *all))
    return op.Invalid("{} of {} elements are rotated, expected an even number of at most as many",
                      turned.text(), size.text());
  const bool interleaved = op.Int("interleaved", 0) != 0;
  // The tables are [batch, length, size / 2] and the same for all heads.
  for (const Value* table : {op.in(1), op.in(2)}) {
    const int rank = op.in(3) != nullptr ? 2 : 3;
    if (table->type.rank() != rank || (op.in(3) != nullptr && op.in(3)->type.rank() != 2))
      return op.Invalid("'{}' has shape {}, expected rank {}", table->name, ShapeText(table->type.dims),
                        rank);
  }
  op.Set(0, Rotation{op.in(1), op.in(2), op.in(3), turned, interleaved}.Of(op, op.in(0), x, heads));
  return {};
}

// Writes `update` into a cache, each batch from its own position on.
Status LowerTensorScatter(Op& op, const Operator& /*row*/) {
  Value* cache = op.in(0);
  Value* update = op.in(1);
  const int rank = cache->type.rank();
  Result<int> axis = op.Axis(op.Int("axis", -2), rank);
  if (!axis) return Forward(axis);
  if (*axis == 0 || update->type.rank() != rank)
    return op.Invalid("axis {} of a cache {} and an update {}, expected one rank and an axis above 0", *axis,
                      ShapeText(cache->type.dims), ShapeText(update->type.dims));
  if (rank == 4 && *axis == 2 && op.String("mode", "linear") == "linear") {
    op.Set(0, AppendToCache(op, cache, update,
                            op.in(2) != nullptr ? op.Cast(op.in(2), kInt64) : op.IntValue(0)));
    return {};
  }
  const std::string mode = op.String("mode", "linear");
  if (mode != "linear" && mode != "circular")
    return op.Invalid("mode is '{}', expected linear or circular", mode);
  const auto at = static_cast<std::size_t>(*axis);
  const Shape &dims = cache->type.dims, &of_update = update->type.dims;
  // Positions along the axis are the same for all that lies behind it.
  Shape along(at + 1, DimExpr(1)), batch = along;
  along[at] = of_update[at];
  batch[0] = of_update[0];
  Value* positions = op.Reshape(CountTo(op, along[at]), along);
  if (op.in(2) != nullptr)
    positions = op.Apply(names::kAdd, positions, op.Reshape(op.Cast(op.in(2), kInt64), batch));
  if (mode == "circular") positions = op.Apply(names::kMod, positions, DimValue(op, dims[at]));
  const auto expand = [&](Value* x, Shape to) {
    return op.Call(names::kExpand, {x}, {}, TensorOf(kInt64, std::move(to)));
  };
  const auto part = [](const Shape& of, std::size_t begin, std::size_t end) {
    return ProductOf(Shape(of.begin() + static_cast<std::ptrdiff_t>(begin),
                           of.begin() + static_cast<std::ptrdiff_t>(end)));
  };
  // Each row and position has a slice.
  const DimExpr rows = part(of_update, 0, at), rest = part(dims, at + 1, dims.size());
  positions = op.Reshape(expand(positions, Shape(of_update.begin(), of_update.begin() + *axis + 1)),
                         {rows, along[at], 1});
  Value* tuples =
      ConcatTo(op, expand(op.Reshape(CountTo(op, rows), {rows, 1, 1}), {rows, along[at], 1}), positions, 2);
  Value* slices = op.Reshape(cache, {part(dims, 0, at), dims[at], rest});
  Value* result = op.Call(names::kScatterNd, {slices, tuples, op.Reshape(update, {rows, along[at], rest})},
                          {{"reduction", std::string("none")}}, slices->type);
  op.Set(0, op.Reshape(result, dims));
  return {};
}

}  // namespace

std::span<const Operator> AttentionOperators() {
  static constexpr Operator kOperators[] = {
      {"Attention", 23, 0, 3, 7,
       "is_causal kv_num_heads left_window_size q_num_heads qk_matmul_output_mode right_window_size scale "
       "softcap softmax_precision",
       LowerAttention},
      {"RotaryEmbedding", 23, 0, 3, 4, "interleaved num_heads rotary_embedding_dim", LowerRotaryEmbedding},
      {"TensorScatter", 24, 0, 2, 3, "axis mode", LowerTensorScatter},
  };
  return kOperators;
}

std::span<const Operator> PreviewOperators() {
  static constexpr Operator kOperators[] = {
      {"FlexAttention", 1, 0, 3, 3, "prob_mod scale score_mod softmax_precision", LowerFlexAttention},
  };
  return kOperators;
}

}  // namespace rewire::compiler
