// SPDX-License-Identifier: Apache-2.0
//
// Convolutions and products of .tflite files, of f32 or of bytes. Sums of bytes are exact; they are scaled by
// x_scale * w_scale / out_scale in f32 and rounded to the nearest and even one, as LiteRT does by XNNPACK.
#include <algorithm>

#include "rewire/compiler/operators/tflite/node.h"
#include "rewire/compiler/operators/tflite_operators.h"
#include "rewire/kernels/contract/elementwise.h"
#include "rewire/kernels/contract/product.h"
#include "rewire/kernels/contract/quantization.h"

namespace rewire::compiler {
namespace {

// The bias of a product: i32 of one rank behind bytes, f32 behind floats. Null if there is none.
Result<Value*> BiasOf(const Op& op, const TfliteNode& node, bool bytes) {
  Value* bias = node.in(2).value;
  if (bias == nullptr) return bias;
  const DLDataType expected = bytes ? kInt32 : kFloat32;
  if (!bias->type.IsTensor() || !(bias->type.dtype == expected) || bias->type.rank() != 1)
    return op.Unsupported("its bias is {}, expected {} of rank 1", TypeText(bias->type), DTypeName(expected));
  return bias;
}

// A convolution of x [N, H, W, C] by weights that `perm` makes [channels, C / groups, H, W].
Status Convolve(Op& op, TfliteNode* node, const Ints& perm, std::int64_t groups) {
  const bool bytes = node->in(0).IsBytes();
  Result<std::vector<onnx::AttributeProto>> window = WindowOf(op);
  if (!window) return Forward(window);
  window->push_back(IntAttribute("group", groups));
  const Result<Value*> bias = BiasOf(op, *node, bytes);
  if (!bias) return Forward(bias);
  Decomposition& parts = node->parts;
  const auto name = [&](Value* value) { return value == nullptr ? "" : parts.Name(value); };
  const TfliteNode::Operand x = node->in(0), w = node->in(1), out = node->out();
  const std::string image = node->Transposed(name(x.value), {0, 3, 1, 2});
  const std::string weights = node->Transposed(name(w.value), perm);
  const std::string sums = bytes
                               ? parts.Add("QLinearConv",
                                           {image, name(x.scale), name(x.zero), weights, name(w.scale),
                                            name(w.zero), name(out.scale), name(out.zero), name(*bias)},
                                           FormOf(*std::move(window)))
                               : parts.Add("Conv", {image, weights, name(*bias)}, FormOf(*std::move(window)));
  const Result<std::string> activated = node->Activated(sums, bytes);
  if (!activated) return Forward(activated);
  return node->Set(node->Transposed(*activated, {0, 2, 3, 1}));
}

Status CheckImage(const Op& op, const TfliteNode& node) {
  for (const int i : {0, 1}) {
    const Value* operand = node.in(i).value;
    if (!operand->type.IsTensor() || operand->type.rank() != 4)
      return op.Invalid("input {} is {}, expected rank 4", i, TypeText(operand->type));
  }
  return node.CheckAllOneKind({0, 1}, 1);
}

Status LowerConv2d(Op& op, const Operator& /*row*/) {
  TfliteNode node(op);
  if (Status fits = node.Check(2, 3); !fits) return fits;
  if (Status fits = CheckImage(op, node); !fits) return fits;
  const auto channels = node.in(0).value->type.dims[3].constant(),
             depth = node.in(1).value->type.dims[3].constant();
  if (!channels || !depth || *depth < 1 || *channels % *depth != 0) {
    return op.Invalid("{} by weights {}: the channels do not fit", TypeText(node.in(0).value->type),
                      TypeText(node.in(1).value->type));
  }
  return Convolve(op, &node, {0, 3, 1, 2}, *channels / *depth);
}

// Output channel c reads input channel c / multiplier, as groups of one channel do.
Status LowerDepthwiseConv2d(Op& op, const Operator& /*row*/) {
  TfliteNode node(op);
  if (Status fits = node.Check(2, 3); !fits) return fits;
  if (Status fits = CheckImage(op, node); !fits) return fits;
  const Shape& weights = node.in(1).value->type.dims;
  const auto channels = node.in(0).value->type.dims[3].constant();
  if (!channels || *channels < 1 || !weights[0].Is(1) ||
      !weights[3].Is(*channels * op.Int("depth_multiplier", 0))) {
    return op.Invalid("{} by weights {} and depth_multiplier {}", TypeText(node.in(0).value->type),
                      TypeText(node.in(1).value->type), op.Int("depth_multiplier", 0));
  }
  return Convolve(op, &node, {3, 0, 1, 2}, *channels);
}

// x [..., depth] as [rows, depth].
Result<std::string> RowsOf(Op& op, TfliteNode* node) {
  const std::optional<std::int64_t> depth = node->in(1).value->type.dims[1].constant();
  if (!depth || *depth < 1) return op.Invalid("weights are {}", TypeText(node->in(1).value->type));
  return node->parts.Add("Reshape",
                         {node->parts.Name(node->in(0).value), node->parts.Name(op.IntsValue({-1, *depth}))});
}

Status LowerFullyConnected(Op& op, const Operator& /*row*/) {
  TfliteNode node(op);
  if (Status fits = node.Check(2, 3); !fits) return fits;
  const TfliteNode::Operand x = node.in(0), w = node.in(1), out = node.out();
  if (w.value->type.rank() != 2)
    return op.Invalid("weights are {}, expected rank 2", TypeText(w.value->type));
  if (Status fits = node.CheckAllOneKind({0, 1}, 1); !fits) return fits;
  const bool bytes = x.IsBytes();
  const Result<Value*> bias = BiasOf(op, node, bytes);
  if (!bias) return Forward(bias);
  const Result<std::string> rows = RowsOf(op, &node);
  if (!rows) return Forward(rows);
  Decomposition& parts = node.parts;
  std::string product = *rows;
  if (bytes) {
    const std::string sums = parts.Add("MatMulInteger", {*rows, node.Transposed(parts.Name(w.value), {1, 0}),
                                                         parts.Name(x.zero), parts.Name(w.zero)});
    if (!parts.status()) return parts.status();
    Value* total = parts.ValueOf(sums);
    if (*bias != nullptr) total = op.Apply(names::kAdd, total, *bias);
    product =
        parts.Name(op.Call(names::kRequantize, {total, x.scale, w.scale, out.scale, out.zero},
                           {{"axis", std::int64_t{1}}}, TensorOf(out.zero->type.dtype, total->type.dims)));
  } else {
    product = parts.Add("Gemm", {*rows, parts.Name(w.value), *bias == nullptr ? "" : parts.Name(*bias)},
                        FormOf({IntAttribute("transB", 1)}));
  }
  const Result<std::string> activated = node.Activated(product, bytes);
  if (!activated) return Forward(activated);
  if (op.Int("keep_num_dims", 0) == 0) return node.Set(*activated);
  if (!parts.status()) return parts.status();
  Shape dims = x.value->type.dims;
  if (dims.empty()) return op.Invalid("input 0 is {}", TypeText(x.value->type));
  dims.back() = w.value->type.dims[0];
  return node.Set(op.Reshape(parts.ValueOf(*activated), std::move(dims)));
}

}  // namespace

std::span<const Operator> TfliteProductOperators() {
  static constexpr Operator kOperators[] = {
      {"CONV_2D", 1, 0, 2, kAnyNumber,
       "dilation_h_factor dilation_w_factor fused_activation_function padding stride_h stride_w", LowerConv2d,
       nullptr, kMayLack},
      {"DEPTHWISE_CONV_2D", 1, 0, 2, kAnyNumber,
       "depth_multiplier dilation_h_factor dilation_w_factor fused_activation_function padding stride_h "
       "stride_w",
       LowerDepthwiseConv2d, nullptr, kMayLack},
      {"FULLY_CONNECTED", 1, 0, 2, kAnyNumber, "fused_activation_function keep_num_dims weights_format=0",
       LowerFullyConnected, nullptr, kMayLack},
  };
  return kOperators;
}

}  // namespace rewire::compiler
