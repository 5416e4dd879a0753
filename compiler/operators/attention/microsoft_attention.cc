// SPDX-License-Identifier: Apache-2.0
// The attention operators of domain com.microsoft.
#include "rewire/compiler/import/onnx_proto.h"
#include "rewire/compiler/lower/registry.h"
#include "rewire/compiler/operators/attention_core.h"
#include "rewire/compiler/operators/building_blocks.h"
#include "rewire/kernels/contract/elementwise.h"
#include "rewire/kernels/contract/movement.h"

namespace rewire::compiler {
namespace {

// More heads or elements of a head than any model has: sums and multiples of them do not overflow.
constexpr std::int64_t kMost = std::int64_t{1} << 40;

// Keys that a mask leaves out get this score. It is finite: a query that may see no key sees all.
Value* FilterBias(Op& op, Value* allowed, DLDataType dtype) {
  Value* filter = op.Scalar(dtype, op.Float("mask_filter_value", -10000));
  return op.Call(names::kWhere, {allowed, op.Scalar(dtype, 0), filter}, {},
                 TensorOf(dtype, allowed->type.dims));
}

// A mask of integers as a bias of the scores: lengths [batch], or 1 for each key that may be seen, as [batch,
// keys], [batch, queries, keys] or [batch, 1, queries, keys].
Result<Value*> BiasOfMask(Op& op, Value* mask, const DimExpr& batch, const DimExpr& keys, DLDataType dtype) {
  const Shape dims = mask->type.dims;
  Value* numbers = op.Cast(mask, kInt64);
  if (dims.size() == 1) {
    if (!(dims[0] == batch)) return op.Unsupported("a mask {} for batch {}", ShapeText(dims), batch.text());
    Value* lengths = op.Reshape(numbers, {dims[0], 1, 1, 1});
    return FilterBias(op, op.Compare(names::kLess, CountTo(op, keys), lengths), dtype);
  }
  const DimExpr& last = dims.back();
  const bool differs = last.IsConstant() && keys.IsConstant() && !(last == keys);
  if (dims.size() > 4 || differs)
    return op.Unsupported("a mask {} for {} keys", ShapeText(dims), keys.text());
  Value* allowed = op.Compare(names::kGreater, numbers, op.IntValue(0));
  Shape four = dims;
  while (four.size() < 4) four.insert(four.begin() + 1, DimExpr(1));
  return FilterBias(op, op.Reshape(allowed, four), dtype);
}

// `part` of a row of numbers that q, k and v share, added to x.
Value* AddPart(Op& op, Value* x, Value* bias, const DimExpr& start) {
  if (bias == nullptr) return x;
  return op.Apply(names::kAdd, x, SliceOf(op, bias, 0, start, start + x->type.dims.back()));
}

// Adds what the operators of this domain have in common: the scale, the causal mask, the mask, the bias.
Status ReadCommon(Op& op, Value* mask, Value* bias, Value* past, AttentionInputs* inputs) {
  const DimExpr batch = inputs->q->type.dims[0], keys = inputs->k->type.dims[2];
  const DLDataType dtype = inputs->q->type.dtype;
  if (op.HasAttribute("scale") && op.Float("scale", 0) != 0) inputs->scale = op.Float("scale", 0);
  PositionMask positions;
  positions.queries = inputs->q->type.dims[2];
  positions.keys = keys;
  if (op.Int("unidirectional", 0) != 0) positions.right = 0;
  if (past != nullptr) positions.offset = DimValue(op, past->type.dims[2]);
  inputs->positions = positions;
  if (mask != nullptr) {
    const Result<Value*> of_mask = BiasOfMask(op, mask, batch, keys, dtype);
    if (!of_mask) return Forward(of_mask);
    inputs->bias = *of_mask;
  } else {
    static_cast<void>(op.Float("mask_filter_value", 0));
  }
  if (bias != nullptr)
    inputs->bias = inputs->bias != nullptr ? op.Apply(names::kAdd, inputs->bias, bias) : bias;
  return {};
}

// Inputs: query, key, value, bias, mask, attention_bias, past_key, past_value; the others are of decoders
// that share buffers.
Status LowerMultiHeadAttention(Op& op, const Operator& /*row*/) {
  Value *key = op.in(1), *value = op.in(2), *past = op.in(6);
  if (key == nullptr || value == nullptr || op.in(0)->type.rank() != 3)
    return op.Unsupported("keys and values packed with queries or with each other");
  if (op.in(8) != nullptr || op.in(9) != nullptr) return op.Unsupported("a cache of shared buffers");
  const std::int64_t heads = op.Int("num_heads", 0);
  AttentionInputs inputs;
  const DimExpr hidden = op.in(0)->type.dims[2];
  inputs.joined_q = AddPart(op, op.in(0), op.in(3), 0);
  const Result<Value*> q = SplitHeads(op, inputs.joined_q, heads);
  if (!q) return Forward(q);
  inputs.q = *q;
  // Keys of cross attention come with their heads apart, and without a bias.
  struct Side {
    Value* given;
    Value** tensor;
    DimExpr start;
  };
  for (const Side& side : {Side{key, &inputs.k, hidden}, Side{value, &inputs.v, hidden * DimExpr(2)}}) {
    *side.tensor = side.given;
    if (side.given->type.rank() == 4) continue;
    const Result<Value*> split = SplitHeads(op, AddPart(op, side.given, op.in(3), side.start), heads);
    if (!split) return Forward(split);
    *side.tensor = *split;
  }
  const bool fits =
      past == nullptr || (op.in(7) != nullptr && past->type.rank() == 4 && op.in(7)->type.rank() == 4);
  if ((past == nullptr) != (op.in(7) == nullptr) || !fits)
    return op.Invalid("it has one of past_key and past_value, or not of rank 4");
  inputs.k = ConcatTo(op, past, inputs.k, 2);
  inputs.v = ConcatTo(op, op.in(7), inputs.v, 2);
  if (Status read = ReadCommon(op, op.in(4), op.in(5), past, &inputs); !read) return read;
  const Result<AttentionOutputs> outputs = BuildAttention(op, inputs);
  if (!outputs) return Forward(outputs);
  if (op.Wants(3)) return op.Unsupported("the scores as an output");
  op.Set(0, JoinedOf(op, *outputs));
  op.Set(1, inputs.k);
  op.Set(2, inputs.v);
  return {};
}

// Inputs: x, weights and bias of queries, keys and values, a mask, keys and values of the past, a bias of the
// scores.
Status LowerMicrosoftAttention(Op& op, const Operator& /*row*/) {
  Value *x = op.in(0), *weights = op.in(1), *past = op.in(4);
  if (op.in(6) != nullptr) return op.Unsupported("a cache of shared buffers");
  if (x->type.rank() != 3 || weights->type.rank() != 2 || !weights->type.dims[1].IsConstant())
    return op.Unsupported("input {} with weights {}", ShapeText(x->type.dims), ShapeText(weights->type.dims));
  const std::int64_t heads = op.Int("num_heads", 0), all = *weights->type.dims[1].constant();
  const Ints sizes = op.IntList("qkv_hidden_sizes", {all / 3, all / 3, all / 3});
  if (sizes.size() != 3 || all > kMost || sizes[0] < 1 || sizes[2] < 1 || sizes[0] != sizes[1] ||
      sizes[0] > all || sizes[2] != all - 2 * sizes[0]) {
    return op.Invalid("qkv_hidden_sizes of {} numbers do not add up to {}", sizes.size(), all);
  }
  const Result<Value*> product = MatMulOf(op, x, weights);
  if (!product) return Forward(product);
  Value* sum = op.in(2) != nullptr ? op.Apply(names::kAdd, *product, op.in(2)) : *product;
  AttentionInputs inputs;
  Value** const tensors[] = {&inputs.q, &inputs.k, &inputs.v};
  std::int64_t start = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    Value* part = SliceOf(op, sum, 2, start, start + sizes[i]);
    const Result<Value*> split = SplitHeads(op, part, heads);
    if (!split) return Forward(split);
    *tensors[i] = *split;
    if (i == 0) inputs.joined_q = part;
    start += sizes[i];
  }
  Value* past_key = nullptr;
  if (past != nullptr) {
    if (past->type.rank() != 5)
      return op.Invalid("past has shape {}, expected [2, batch, heads, length, size]",
                        ShapeText(past->type.dims));
    const Shape dims(past->type.dims.begin() + 1, past->type.dims.end());
    past_key = op.Reshape(SliceOf(op, past, 0, 0, 1), dims);
    inputs.k = ConcatTo(op, past_key, inputs.k, 2);
    inputs.v = ConcatTo(op, op.Reshape(SliceOf(op, past, 0, 1, 2), dims), inputs.v, 2);
  }
  if (Status read = ReadCommon(op, op.in(3), op.in(5), past_key, &inputs); !read) return read;
  const Result<AttentionOutputs> outputs = BuildAttention(op, inputs);
  if (!outputs) return Forward(outputs);
  op.Set(0, JoinedOf(op, *outputs));
  if (!op.Wants(1)) return {};
  const auto one = [&](Value* tensor) {
    Shape dims = tensor->type.dims;
    dims.insert(dims.begin(), DimExpr(1));
    return op.Reshape(tensor, dims);
  };
  op.Set(1, ConcatTo(op, one(inputs.k), one(inputs.v), 0));
  return {};
}

// The positions that a table is read at: [batch, length], or one from which all sentences begin.
Result<Value*> PositionsOf(Op& op, Value* positions, const DimExpr& batch, const DimExpr& length) {
  if (positions->type.rank() == 2) return positions;
  if (positions->type.rank() != 1 || !positions->type.dims[0].Is(1))
    return op.Invalid("position_ids have shape {}, expected [1] or [batch, length]",
                      ShapeText(positions->type.dims));
  Value* places = op.Apply(names::kAdd, CountTo(op, length), op.Cast(positions, kInt64));
  return op.Call(names::kExpand, {places}, {}, TensorOf(kInt64, {batch, length}));
}

Status LowerMicrosoftRotaryEmbedding(Op& op, const Operator& /*row*/) {
  Value* x = op.in(0);
  const std::int64_t given = op.Int("rotary_embedding_dim", 0);
  for (const Value* table : {op.in(2), op.in(3)}) {
    const Shape& dims = table->type.dims;
    const std::int64_t half = dims.size() == 2 ? dims[1].constant().value_or(1) : 0;
    if (half < 1 || half > kMost)
      return op.Invalid("'{}' has shape {}, expected [positions, size / 2]", table->name, ShapeText(dims));
    if (given != 0 && dims[1].IsConstant() && given != 2 * half)
      return op.Invalid("rotary_embedding_dim is {}, expected {}", given, 2 * half);
  }
  if (given < 0 || given % 2 != 0 || given > kMost)
    return op.Invalid("rotary_embedding_dim is {}, expected an even number", given);
  const DimExpr turned = given != 0 ? DimExpr(given) : op.in(2)->type.dims[1] * DimExpr(2);
  std::int64_t heads = op.Int("num_heads", 0);
  Value* whole = x;
  if (x->type.rank() == 3) {
    const DimExpr hidden = x->type.dims[2];
    if (heads == 0 && hidden.IsConstant() && turned.IsConstant())
      heads = *hidden.constant() / *turned.constant();
    if (heads == 0) {
      // Only the run knows how many heads there are, each as large as what is turned.
      whole = x = SplitInto(op, x, DimExpr::FloorDiv(hidden, turned), turned);
    } else {
      const Result<Value*> split = SplitHeads(op, x, heads);
      if (!split) return Forward(split);
      x = *split;
    }
  }
  if (x->type.rank() != 4)
    return op.Invalid("input has shape {}, expected rank 3 or 4", ShapeText(x->type.dims));
  const std::optional<std::int64_t> size = x->type.dims[3].constant();
  if (size && turned.IsConstant() && *size < *turned.constant())
    return op.Invalid("{} of {} elements are rotated", turned.text(), *size);
  const Result<Value*> positions = PositionsOf(op, op.in(1), x->type.dims[0], x->type.dims[2]);
  if (!positions) return Forward(positions);
  const bool interleaved = op.Int("interleaved", 0) != 0;
  Value* y = Rotation{op.in(2), op.in(3), *positions, turned, interleaved}.Of(op, whole, x, heads);
  const Type& type = op.in(0)->type;
  op.Set(0,
         type.rank() == 3 && y->type.rank() == 4 ? op.Reshape(op.Transpose(y, {0, 2, 1, 3}), type.dims) : y);
  return {};
}

// The type that a graph, or one inside it, declares of a value. Names are unique in a model.
const onnx::TypeProto* FindDeclared(const onnx::GraphProto& graph, const std::string& name) {
  for (const auto* values : {&graph.output(), &graph.value_info()}) {
    for (const onnx::ValueInfoProto& value : *values) {
      if (value.name() == name) return &value.type();
    }
  }
  for (const onnx::NodeProto& node : graph.node()) {
    for (const onnx::AttributeProto& attribute : node.attribute()) {
      if (!attribute.has_g()) continue;
      if (const onnx::TypeProto* found = FindDeclared(attribute.g(), name)) return found;
    }
  }
  return nullptr;
}

// The type that the model declares for output i; nullopt if it declares none, and in the body of a function.
std::optional<Type> DeclaredOutput(Op& op, int i) {
  if (!op.Wants(i) || !op.scope().of_model) return std::nullopt;
  const std::string& name = op.node().output(i);
  const onnx::TypeProto* declared = FindDeclared(op.lowering().model().graph(), name);
  if (declared == nullptr) return std::nullopt;
  Result<Type> type = op.lowering().DeclaredType(*declared, name);
  return type ? std::optional<Type>(*std::move(type)) : std::nullopt;
}

// A cache with room for `length` positions, i64[]: the past, or a longer copy of it with zeros behind.
Value* GrownCache(Op& op, Value* past, const Value& like, Value* length) {
  const Shape dims = like.type.dims;
  const DLDataType dtype = like.type.dtype;
  Value* rest = length;
  if (past != nullptr)
    rest = op.Apply(names::kMax, op.Apply(names::kSub, length, DimValue(op, past->type.dims[2])),
                    op.IntValue(0));
  if (past == nullptr)
    past =
        op.Call(names::kExpand, {op.Scalar(dtype, 0)}, {}, TensorOf(dtype, {dims[0], dims[1], 0, dims[3]}));
  Value* pads = op.Concat({op.IntsValue({0, 0, 0, 0, 0, 0}), op.Reshape(rest, {1}), op.IntsValue({0})}, 0);
  Op::KernelCall pad;
  pad.kernel = names::kDynamicPad;
  pad.inputs = {past, pads};
  pad.attributes = {{"mode", std::string("constant")}};
  pad.shapes = {op.ShapeValue({names::kShapeDynamicPad, {op.ShapeOf(past), pads}, {}}, 4)};
  const DimExpr grown = DimExpr::Symbol(op.lowering().graph().FreshSymbol("cache"));
  pad.outputs = {TensorOf(dtype, {dims[0], dims[1], grown, dims[3]})};
  return op.Call(std::move(pad))[0];
}

// The past with new keys or values x [batch, length, heads * size] written into it, from each sentence's
// position `begin` on. The past is a buffer, which is filled in place, if the model declares the same shape
// for it and the present (output `output`); then it must have room. Otherwise the present is as long as the
// past or, if that is longer, as `length`. `apart` is x with an axis of heads.
Value* IntoCache(Op& op, Value* past, Value* x, const Value& apart, int output, Value* begin, Value* length) {
  const std::optional<Type> declared = DeclaredOutput(op, output);
  const bool is_buffer = past != nullptr && declared && declared->IsTensor() && declared->ranked &&
                         ShapeText(declared->dims) == ShapeText(past->type.dims);
  return AppendToCache(op, is_buffer ? past : GrownCache(op, past, apart, length), x, begin);
}

// Inputs: query, key, value, past_key, past_value, seqlens_k, total_sequence_length, cos_cache, sin_cache,
// position_ids, attention_bias; the others are of quantized caches and normalized queries.
Status LowerGroupQueryAttention(Op& op, const Operator& /*row*/) {
  for (int i = 11; i < op.inputs(); ++i) {
    if (op.in(i) != nullptr) return op.Unsupported("input {}", i);
  }
  const std::int64_t heads = op.Int("num_heads", 0), kv_heads = op.Int("kv_num_heads", 0);
  Value *query = op.in(0), *key = op.in(1), *value = op.in(2);
  if (query == nullptr || op.in(5) == nullptr || op.in(6) == nullptr)
    return op.Invalid("query, seqlens_k or total_sequence_length is missing");
  if (query->type.rank() != 3 || heads < 1 || heads > kMost || kv_heads < 1 || heads % kv_heads != 0)
    return op.Invalid("query has shape {} for {} heads and {} of keys", ShapeText(query->type.dims), heads,
                      kv_heads);
  if (key == nullptr) {
    const DimExpr size = DimExpr::FloorDiv(query->type.dims[2], heads + 2 * kv_heads);
    const DimExpr of_q = size * DimExpr(heads), of_k = size * DimExpr(kv_heads);
    Value* packed = query;
    query = SliceOf(op, packed, 2, 0, of_q);
    key = SliceOf(op, packed, 2, of_q, of_q + of_k);
    value = SliceOf(op, packed, 2, of_q + of_k, of_q + of_k * DimExpr(2));
  }
  if (value == nullptr) return op.Invalid("value is missing");
  for (const int i : {3, 4}) {
    if (op.in(i) != nullptr && op.in(i)->type.rank() != 4)
      return op.Invalid("input {} has shape {}, expected rank 4", i, ShapeText(op.in(i)->type.dims));
  }
  AttentionInputs inputs;
  struct Side {
    Value* given;
    Value** tensor;
    std::int64_t heads;
  };
  for (const Side& side :
       {Side{query, &inputs.q, heads}, Side{key, &inputs.k, kv_heads}, Side{value, &inputs.v, kv_heads}}) {
    const Result<Value*> split = SplitHeads(op, side.given, side.heads);
    if (!split) return Forward(split);
    *side.tensor = *split;
  }
  const DimExpr batch = inputs.q->type.dims[0], length = inputs.q->type.dims[2];
  Value* total = op.Reshape(op.Cast(op.in(6), kInt64), {});
  Value* count = DimValue(op, length);
  // The first call has all tokens, and those behind a sentence's end fill it up.
  Value* first = op.Compare(names::kEqual, total, count);
  Value* ends =
      op.Apply(names::kAdd, op.Reshape(op.Cast(op.in(5), kInt64), {batch, 1, 1, 1}), op.IntValue(1));
  Value* before = op.Apply(names::kSub, ends, count);
  // The position at which each sentence's new tokens begin.
  Value* begin = op.Call(names::kWhere, {first, op.IntValue(0), before}, {}, before->type);
  inputs.joined_q = query;
  if (op.Int("do_rotary", 0) != 0) {
    if (op.in(7) == nullptr || op.in(8) == nullptr || op.in(7)->type.rank() != 2 ||
        !op.in(7)->type.dims[1].IsConstant() || op.in(8)->type.rank() != 2)
      return op.Unsupported("do_rotary without tables [positions, size / 2] of known size");
    Value* places = op.in(9);
    if (places == nullptr) {
      places = op.Apply(names::kAdd, begin, op.Reshape(CountTo(op, length), {1, 1, length, 1}));
      places = op.Reshape(places, {batch, length});
    } else if (places->type.rank() != 2) {
      return op.Invalid("position_ids have shape {}, expected [batch, length]", ShapeText(places->type.dims));
    }
    const bool interleaved = op.Int("rotary_interleaved", 0) != 0;
    const DimExpr turned = op.in(7)->type.dims[1] * DimExpr(2);
    const Rotation rotation{op.in(7), op.in(8), places, turned, interleaved};
    inputs.joined_q = rotation.Of(op, query, inputs.q, heads);
    key = rotation.Of(op, key, inputs.k, kv_heads);
    for (const Side& side : {Side{inputs.joined_q, &inputs.q, heads}, Side{key, &inputs.k, kv_heads}}) {
      const Result<Value*> split = SplitHeads(op, side.given, side.heads);
      if (!split) return Forward(split);
      *side.tensor = *split;
    }
  } else {
    static_cast<void>(op.Int("rotary_interleaved", 0));
  }
  Value* of_batch = op.Reshape(begin, {batch});
  inputs.k = IntoCache(op, op.in(3), key, *inputs.k, 1, of_batch, total);
  inputs.v = IntoCache(op, op.in(4), value, *inputs.v, 2, of_batch, total);
  op.Set(1, inputs.k);
  op.Set(2, inputs.v);
  if (op.Float("scale", 0) != 0) inputs.scale = op.Float("scale", 0);
  inputs.softcap = op.Float("softcap", 0);
  PositionMask mask;
  mask.queries = length;
  mask.keys = inputs.k->type.dims[2];
  mask.offset = begin;
  mask.right = 0;
  // A window of n keys has the query's own in it.
  if (const std::int64_t window = op.Int("local_window_size", -1); window > 0) mask.left = window - 1;
  inputs.positions = mask;
  inputs.bias = op.in(10);
  const Result<AttentionOutputs> outputs = BuildAttention(op, inputs);
  if (!outputs) return Forward(outputs);
  op.Set(0, JoinedOf(op, *outputs));
  return {};
}

}  // namespace

std::span<const Operator> MicrosoftAttentionOperators() {
  static constexpr Operator kOperators[] = {
      {"Attention", 1, 0, 2, 7,
       "do_rotary=0 mask_filter_value num_heads past_present_share_buffer=0 qkv_hidden_sizes "
       "~rotary_embedding_dim scale unidirectional",
       LowerMicrosoftAttention},
      {"GroupQueryAttention", 1, 0, 7, 16,
       "causal=1 do_rotary ~k_quant_type ~kv_cache_bit_width kv_num_heads local_window_size num_heads "
       "~qk_norm_epsilon qk_output=0 rotary_interleaved scale sliding_window_cache=0 smooth_softmax=0 "
       "softcap "
       "~v_quant_type",
       LowerGroupQueryAttention, nullptr, kMayLack},
      {"MultiHeadAttention", 1, 0, 1, 10, "mask_filter_value num_heads scale unidirectional",
       LowerMultiHeadAttention},
      {"RotaryEmbedding", 1, 0, 4, 4,
       "interleaved is_packed_batching=0 num_heads rotary_embedding_dim scale=1",
       LowerMicrosoftRotaryEmbedding},
  };
  return kOperators;
}

}  // namespace rewire::compiler
