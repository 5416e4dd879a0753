// SPDX-License-Identifier: Apache-2.0
// Operators of domain com.microsoft, into which ONNX Runtime's optimizer fuses others.

#include "rewire/compiler/lower/registry.h"
#include "rewire/compiler/operators/building_blocks.h"
#include "rewire/kernels/contract/elementwise.h"
#include "rewire/kernels/contract/generator.h"
#include "rewire/kernels/contract/indexing.h"
#include "rewire/kernels/contract/movement.h"
#include "rewire/kernels/contract/normalization.h"
#include "rewire/kernels/contract/reduction.h"

namespace rewire::compiler {
namespace {

// A transposed matrix; a vector stays.
Value* TransposeLast(Op& op, Value* x) {
  const int rank = x->type.rank();
  if (rank < 2) return x;
  Ints perm;
  for (int i = 0; i < rank; ++i) perm.push_back(i);
  std::swap(perm[static_cast<std::size_t>(rank - 1)], perm[static_cast<std::size_t>(rank - 2)]);
  return op.Transpose(x, perm);
}

Status LowerFusedMatMul(Op& op, const Operator& /*row*/) {
  Value* a = op.Int("transA", 0) != 0 ? TransposeLast(op, op.in(0)) : op.in(0);
  Value* b = op.Int("transB", 0) != 0 ? TransposeLast(op, op.in(1)) : op.in(1);
  double alpha = op.Float("alpha", 1);
  b = TakeFactor(op, b, &alpha);
  const Result<Value*> product = MatMulOf(op, a, b);
  if (!product) return Forward(product);
  op.Set(0,
         alpha == 1 ? *product : op.Apply(names::kMul, *product, op.Scalar((*product)->type.dtype, alpha)));
  return {};
}

// Applies the activation that follows a fused operator, with up to two numbers.
Result<Value*> Activate(Op& op, Value* x, const std::string& name, double alpha, double beta) {
  if (name.empty()) return x;
  if (name == "Relu") return op.Unary(names::kRelu, x);
  if (name == "Tanh") return op.Unary(names::kTanh, x);
  if (name == "Sigmoid") return op.Unary(names::kSigmoid, x);
  if (name == "LeakyRelu") return op.Unary(names::kLeakyRelu, x, {{"alpha", alpha}});
  if (name == "Clip") return op.Unary(names::kClip, x, {{"min", alpha}, {"max", beta}});
  if (name == "HardSigmoid") return op.Unary(names::kHardSigmoid, x, {{"alpha", alpha}, {"beta", beta}});
  return op.Unsupported("activation '{}'", name);
}

Status LowerFusedConv(Op& op, const Operator& /*row*/) {
  Result<Value*> y = ConvOf(op);
  if (!y) return Forward(y);
  if (op.in(3) != nullptr) y = op.Apply(names::kAdd, *y, op.in(3));
  const std::string activation = op.String("activation", "");
  std::vector<double> given = op.FloatList("activation_params");
  const std::size_t wanted = activation == "LeakyRelu"                             ? 1
                             : activation == "Clip" || activation == "HardSigmoid" ? 2
                                                                                   : 0;
  if (given.size() != wanted)
    return op.Invalid("activation_params has {} numbers, expected {}", given.size(), wanted);
  given.resize(2);
  y = Activate(op, *y, activation, given[0], given[1]);
  if (!y) return Forward(y);
  op.Set(0, *y);
  return {};
}

Status LowerFusedGemm(Op& op, const Operator& /*row*/) {
  Result<Value*> y = GemmOf(op);
  if (!y) return Forward(y);
  const std::string activation = op.String("activation", "");
  const bool hard = activation == "HardSigmoid";
  if (activation == "Clip") return op.Unsupported("activation 'Clip'");
  y = Activate(op, *y, activation, op.Float("activation_alpha", hard ? 0.2 : 0.01),
               op.Float("activation_beta", 0.5));
  if (!y) return Forward(y);
  op.Set(0, *y);
  return {};
}

// Gelu of x and a bias; the row's kernel attribute says which formula.
Status LowerBiasGelu(Op& op, const Operator& row) {
  Value* x = op.in(0);
  if (op.in(1) != nullptr) x = op.Apply(names::kAdd, x, op.in(1));
  op.Set(0, op.Unary(names::kGelu, x, {{"approximate", std::string(row.kernel)}}));
  return {};
}

Status LowerQuickGelu(Op& op, const Operator& /*row*/) {
  Value* x = op.in(0);
  Value* scaled = op.Apply(names::kMul, x, op.Scalar(x->type.dtype, op.Float("alpha", 1.702)));
  op.Set(0, op.Apply(names::kMul, x, op.Unary(names::kSigmoid, scaled)));
  return {};
}

// Layer normalization over the last axis, with the means and inverse deviations.
std::vector<Value*> LayerNorm(Op& op, Value* x, Value* scale, Value* bias, double epsilon, bool statistics) {
  Op::KernelCall call;
  call.kernel = names::kLayerNorm;
  call.inputs = {x, scale, bias != nullptr ? bias : op.Missing(x->type.dtype)};
  call.attributes = {{"axis", std::int64_t{x->type.rank() - 1}}, {"epsilon", epsilon}};
  call.outputs = {x->type};
  if (statistics) {
    Type kept = x->type;
    kept.dims.back() = 1;
    call.outputs.insert(call.outputs.end(), 2, kept);
  }
  return op.Call(std::move(call));
}

// Inputs: x, what is added to it, the scale, the bias of the normalization (not of the simplified one), a
// bias that is added too.
Status LowerSkipNormalization(Op& op, const Operator& row) {
  const bool simplified = std::string_view(row.type) == "SkipSimplifiedLayerNormalization";
  if (op.in(0)->type.rank() < 1) return op.Invalid("input 0 is a scalar");
  Value* sum = op.Apply(names::kAdd, op.in(0), op.in(1));
  if (Value* bias = op.in(simplified ? 3 : 4)) sum = op.Apply(names::kAdd, sum, bias);
  const double epsilon = op.Float("epsilon", simplified ? 1e-6 : 1e-12);
  const bool statistics = op.Wants(1) || op.Wants(2);
  op.Set(3, sum);
  if (simplified) {
    if (statistics) return op.Unsupported("the statistics as outputs");
    op.Set(0, RmsNormOf(op, sum, op.in(2), sum->type.rank() - 1, epsilon));
    return {};
  }
  const std::vector<Value*> outputs = LayerNorm(op, sum, op.in(2), op.in(3), epsilon, statistics);
  for (std::size_t i = 0; i < outputs.size(); ++i) op.Set(static_cast<int>(i), outputs[i]);
  return {};
}

Value* RowsAt(Op& op, Value* table, Value* indices) {
  Shape dims = indices->type.dims;
  dims.push_back(table->type.dims.back());
  return op.Call(names::kGather, {table, indices}, {{"axis", std::int64_t{0}}},
                 TensorOf(table->type.dtype, std::move(dims)));
}

// Inputs: words, segments, tables of words, positions and segments, scale and bias, a mask, positions.
Status LowerEmbedLayerNormalization(Op& op, const Operator& /*row*/) {
  Value *words = op.in(0), *positions = op.in(8);
  for (const int i : {0, 2, 3, 5, 6}) {
    if (op.in(i) == nullptr) return op.Invalid("input {} is missing", i);
  }
  if (words->type.rank() != 2 || op.in(2)->type.rank() != 2 || op.in(3)->type.rank() != 2)
    return op.Invalid("input_ids have shape {}, expected [batch, length]", ShapeText(words->type.dims));
  if (op.in(4) != nullptr && op.in(4)->type.rank() != 2)
    return op.Invalid("segment_embedding has shape {}, expected rank 2", ShapeText(op.in(4)->type.dims));
  Value* sum = RowsAt(op, op.in(2), words);
  if (positions != nullptr) {
    sum = op.Apply(names::kAdd, sum, RowsAt(op, op.in(3), positions));
  } else {
    const DimExpr length = words->type.dims[1];
    Value* limit = op.Reshape(op.DimsValue({length}), {});
    Value* places =
        op.Call(names::kArange, {op.IntValue(0), limit, op.IntValue(1)}, {}, TensorOf(kInt64, {length}));
    sum = op.Apply(names::kAdd, sum, RowsAt(op, op.in(3), places));
  }
  if (op.in(1) != nullptr && op.in(4) != nullptr)
    sum = op.Apply(names::kAdd, sum, RowsAt(op, op.in(4), op.in(1)));
  op.Set(2, sum);
  op.Set(0, LayerNorm(op, sum, op.in(5), op.in(6), op.Float("epsilon", 1e-12), false)[0]);
  if (!op.Wants(1)) return {};
  // How many words of each sentence the mask lets through; ONNX Runtime counts them whatever mask_index_type
  // says.
  const Type counts = TensorOf(kInt32, {words->type.dims[0]});
  op.Set(1, op.in(7) != nullptr ? op.Reduce(names::kReduceSum, op.Cast(op.in(7), kInt32), {1}, false)
                                : op.Call(names::kExpand, {op.Scalar(kInt32, 0)}, {}, counts));
  return {};
}

}  // namespace

std::span<const Operator> MicrosoftOperators() {
  static constexpr Operator kOperators[] = {
      {"BiasGelu", 1, 0, 2, 2, "", LowerBiasGelu, "none"},
      {"EmbedLayerNormalization", 1, 0, 7, 9, "epsilon ~mask_index_type", LowerEmbedLayerNormalization,
       nullptr, kMayLack},
      {"FastGelu", 1, 0, 1, 2, "", LowerBiasGelu, "tanh"},
      {"FusedConv", 1, 0, 2, 4,
       "activation activation_params auto_pad dilations group kernel_shape pads strides", LowerFusedConv},
      {"FusedGemm", 1, 0, 2, 3,
       "activation activation_alpha activation_beta ~activation_gamma alpha beta transA transB",
       LowerFusedGemm},
      {"FusedMatMul", 1, 0, 2, 2, "alpha transA transB transBatchA=0 transBatchB=0", LowerFusedMatMul},
      {"Gelu", 1, 0, 1, 1, "", LowerBiasGelu, "none"},
      {"QuickGelu", 1, 0, 1, 1, "alpha", LowerQuickGelu},
      {"SkipLayerNormalization", 1, 0, 3, 5, "epsilon", LowerSkipNormalization},
      {"SkipSimplifiedLayerNormalization", 1, 0, 3, 4, "epsilon", LowerSkipNormalization},
  };
  return kOperators;
}

}  // namespace rewire::compiler
