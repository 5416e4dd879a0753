// SPDX-License-Identifier: Apache-2.0
// RNN, GRU, LSTM: one kernel each, over all steps.
#include "rewire/kernels/contract/recurrent.h"
#include "rewire/compiler/lower/registry.h"
#include "rewire/compiler/operators/attention_core.h"
#include "rewire/kernels/contract/convolution.h"
#include "rewire/kernels/contract/elementwise.h"
#include "rewire/kernels/contract/movement.h"

namespace rewire::compiler {
namespace {

Attributes RecurrentAttributes(const Op& op) {
  Attributes attributes = {{"direction", op.String("direction", "forward")}, {"layout", op.Int("layout", 0)}};
  for (const char* name : {"hidden_size", "linear_before_reset", "input_forget"}) {
    if (op.HasAttribute(name)) attributes.push_back({name, op.Int(name, 0)});
  }
  if (op.HasAttribute("clip")) attributes.push_back({"clip", op.Float("clip", 0)});
  for (const char* name : {"activation_alpha", "activation_beta"}) {
    if (op.HasAttribute(name)) attributes.push_back({name, op.FloatList(name)});
  }
  std::string activations;
  for (const std::string& name : op.StringList("activations"))
    activations += (activations.empty() ? "" : ",") + name;
  if (!activations.empty()) attributes.push_back({"activations", activations});
  return attributes;
}

Status LowerRecurrent(Op& op, const Operator& row) {
  Value* x = op.in(0);
  const Shape& r = op.in(2)->type.dims;
  if (x->type.rank() != 3 || r.size() != 3)
    return op.Invalid("x {} and r {}, expected rank 3", ShapeText(x->type.dims), ShapeText(r));
  const bool batch_first = op.Int("layout", 0) != 0;
  const contract::LayerSizes<DimExpr> sizes(x->type.dims, r[0], r[2], names::GatesOf(row.kernel),
                                            batch_first);
  if (Differ(r[1], sizes.width))
    return op.Invalid("r has shape {}, expected {}", ShapeText(r), ShapeText({sizes.r, sizes.r + 3}));
  const DLDataType dtype = x->type.dtype;
  const Type state = TensorOf(dtype, {sizes.state, sizes.state + 3});
  Op::KernelCall call;
  call.kernel = row.kernel;
  call.inputs = op.Arguments(0, op.type() == "LSTM" ? 7 : 5);
  call.attributes = RecurrentAttributes(op);
  call.outputs = {TensorOf(dtype, {sizes.y, sizes.y + 4}), state};
  if (op.type() == "LSTM") call.outputs.push_back(state);
  if (!op.Wants(0)) call.outputs[0] = TensorOf(dtype, {0});
  const std::vector<Value*> outputs = op.Call(std::move(call));
  for (std::size_t i = 0; i < outputs.size(); ++i) op.Set(static_cast<int>(i), outputs[i]);
  return {};
}

Status LowerLinearAttention(Op& op, const Operator& row) {
  Value *q = op.in(0), *v = op.in(2);
  const std::int64_t q_heads = op.Int("q_num_heads", 0), kv_heads = op.Int("kv_num_heads", 0);
  if (q_heads < 1 || kv_heads < 1 || q_heads % kv_heads != 0)
    return op.Invalid("{} heads of queries for {} of keys, expected a multiple", q_heads, kv_heads);
  for (const Value* tensor : {q, op.in(1), v}) {
    if (tensor->type.rank() != 3)
      return op.Invalid("'{}' has shape {}, expected [batch, length, heads * size]", tensor->name,
                        ShapeText(tensor->type.dims));
  }
  const std::string rule = op.String("update_rule", "gated_delta");
  const bool gated = rule == "gated" || rule == "gated_delta",
             delta = rule == "delta" || rule == "gated_delta";
  if (!gated && !delta && rule != "linear")
    return op.Invalid("update_rule is '{}', expected linear, gated, delta or gated_delta", rule);
  if (gated != (op.in(4) != nullptr) || delta != (op.in(5) != nullptr))
    return op.Invalid("update_rule '{}' goes {} decay and {} beta", rule, gated ? "with" : "without",
                      delta ? "with" : "without");
  const DimExpr key = DimExpr::FloorDiv(q->type.dims[2], q_heads);
  const DimExpr value = DimExpr::FloorDiv(v->type.dims[2], kv_heads);
  double scale = op.Float("scale", 0);
  if (scale == 0) {
    if (!key.IsConstant())
      return op.Unsupported("the size of a head is {}, which is not constant", key.text());
    scale = 1 / std::sqrt(static_cast<double>(*key.constant()));
  }
  // The state is summed over many steps, for which 16 bits are too few.
  const DLDataType given = q->type.dtype, dtype = given.bits < 32 ? kFloat32 : given;
  const DLDataType of_state = op.in(3) != nullptr ? op.in(3)->type.dtype : given;
  Op::KernelCall call;
  call.kernel = row.kernel;
  for (int i = 0; i < 6; ++i)
    call.inputs.push_back(op.in(i) != nullptr ? op.Cast(op.in(i), dtype) : op.Missing(dtype));
  call.attributes = {{"q_heads", q_heads}, {"kv_heads", kv_heads}, {"scale", scale}};
  call.outputs = {TensorOf(dtype, {q->type.dims[0], q->type.dims[1], value * DimExpr(q_heads)}),
                  TensorOf(dtype, {q->type.dims[0], kv_heads, key, value})};
  const std::vector<Value*> outputs = op.Call(std::move(call));
  op.Set(0, op.Cast(outputs[0], given));
  op.Set(1, op.Cast(outputs[1], of_state));
  return {};
}

// A convolution over the input and what came before it, of each channel by itself.
Status LowerCausalConv(Op& op, const Operator& /*row*/) {
  Value *x = op.in(0), *w = op.in(1), *past = op.in(3);
  if (x->type.rank() != 3 || w->type.rank() != 3 || !x->type.dims[1].IsConstant() ||
      !w->type.dims[2].IsConstant() || *w->type.dims[2].constant() < 1) {
    return op.Unsupported("input {} with weights {}, expected [N, C, L] and [C, 1, K] of known C and K",
                          ShapeText(x->type.dims), ShapeText(w->type.dims));
  }
  const std::int64_t channels = *x->type.dims[1].constant(), before = *w->type.dims[2].constant() - 1;
  if (past == nullptr) {
    past = op.Call(names::kExpand, {op.Scalar(x->type.dtype, 0)}, {},
                   TensorOf(x->type.dtype, {x->type.dims[0], channels, before}));
  } else if (past->type.rank() != 3) {
    return op.Invalid("past_state has shape {}, expected [N, C, K - 1]", ShapeText(past->type.dims));
  }
  Value* padded = ConcatTo(op, past, x, 2);
  std::vector<Value*> inputs = {padded, w};
  if (op.in(2) != nullptr) inputs.push_back(op.in(2));
  Value* y = op.Call(names::kConv, inputs, {{"group", channels}}, x->type);
  const std::string activation = op.String("activation", "none");
  if (activation == "silu" || activation == "swish") {
    y = op.Apply(names::kMul, y, op.Unary(names::kSigmoid, y));
  } else if (activation != "none") {
    return op.Invalid("activation is '{}', expected none, silu or swish", activation);
  }
  op.Set(0, y);
  const DimExpr length = padded->type.dims[2];
  if (op.Wants(1)) op.Set(1, SliceOf(op, padded, 2, length - DimExpr(before), length));
  return {};
}

}  // namespace

std::span<const Operator> RecurrentOperators() {
  static constexpr Operator kOperators[] = {
      {"CausalConvWithState", 27, 0, 2, 4, "activation", LowerCausalConv},
      {"GRU", 7, 0, 3, 6,
       "activation_alpha activation_beta activations clip direction hidden_size layout linear_before_reset",
       LowerRecurrent, names::kGru},
      {"LSTM", 7, 0, 3, 8,
       "activation_alpha activation_beta activations clip direction hidden_size input_forget layout",
       LowerRecurrent, names::kLstm},
      {"LinearAttention", 27, 0, 3, 6, "~chunk_size kv_num_heads q_num_heads scale update_rule",
       LowerLinearAttention, names::kLinearAttention},
      {"RNN", 7, 0, 3, 6, "activation_alpha activation_beta activations clip direction hidden_size layout",
       LowerRecurrent, names::kRnn},
  };
  return kOperators;
}

}  // namespace rewire::compiler
