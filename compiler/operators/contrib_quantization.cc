// SPDX-License-Identifier: Apache-2.0
//
// Quantized operators of the domain com.microsoft, as quantizers and optimizers write them. Most are a float
// operator between DequantizeLinear and QuantizeLinear, and are lowered as such. The passes for quantized
// models then find integer kernels for them, as for models that spell this out.
#include <algorithm>
#include <cstddef>
#include <vector>

#include "rewire/compiler/import/onnx_proto.h"
#include "rewire/compiler/lower/registry.h"
#include "rewire/compiler/operators/blocked_weights.h"
#include "rewire/compiler/operators/decomposition.h"

namespace rewire::compiler {
namespace {

using Form = Decomposition::Form;

// Input `first` with its scale and zero in the inputs behind it.
std::string Dequantized(Decomposition* parts, int first) {
  return parts->Add("DequantizeLinear", {parts->In(first), parts->In(first + 1), parts->In(first + 2)});
}

// Sets the node's output to a part.
Status Finish(Op& op, Decomposition* parts, const std::string& result) {
  if (!parts->status()) return parts->status();
  op.Set(0, parts->ValueOf(result));
  return {};
}

// Sets the node's output to a part, quantized by the scale and zero from input `scale` on. Without a zero,
// the result has the dtype of input `like`.
Status Finish(Op& op, Decomposition* parts, const std::string& result, int scale, int like) {
  Form form;
  const Value* model = op.in(like);
  if (op.in(scale + 1) == nullptr && model != nullptr && model->type.dtype == kInt8) {
    form.attributes.push_back(IntAttribute("output_dtype", onnx::TensorProto::INT8));
  }
  const std::string quantized =
      parts->Add("QuantizeLinear", {result, parts->In(scale), parts->In(scale + 1)}, form);
  return Finish(op, parts, quantized);
}

// Puts the channels of an image, which has the rank of input 0, behind the batch, where ONNX's operators have
// them; or, if not `forth`, back to the end.
Status MoveChannels(const Op& op, Decomposition* parts, bool forth, std::string* image) {
  if (op.in(0) == nullptr) return op.Invalid("input 0 is missing");
  const int rank = op.in(0)->type.rank();
  if (rank < 3) return op.Invalid("input {} has no spatial axes", ShapeText(op.in(0)->type.dims));
  Ints perm = {0};
  if (forth) perm.push_back(rank - 1);
  for (int i = forth ? 1 : 2; i < (forth ? rank - 1 : rank); ++i) perm.push_back(i);
  if (!forth) perm.push_back(1);
  Form form;
  form.attributes.push_back(IntsAttribute("perm", perm));
  *image = parts->Add("Transpose", {*image}, form);
  return {};
}

// QLinearSigmoid and the like: the operator's name stands behind "QLinear".
Status LowerOfOne(Op& op, const Operator& /*row*/) {
  Decomposition parts(op);
  Form form;
  form.opset = 13;
  form.copied = {"alpha",    "auto_pad",     "axes", "axis",   "ceil_mode", "dilations", "count_include_pad",
                 "keepdims", "kernel_shape", "pads", "strides"};
  const std::string type = op.type().substr(std::string("QLinear").size());
  if (type == "Softmax") form.opset = op.Int("opset", 13);
  if (form.opset < 1 || form.opset > kNewestOpset) {
    return op.Invalid("opset is {}, expected 1 to {}", form.opset, kNewestOpset);
  }
  std::string x = Dequantized(&parts, 0);
  if (op.Int("channels_last", 0) == 0) return Finish(op, &parts, parts.Add(type, {x}, form), 3, 0);
  if (Status moved = MoveChannels(op, &parts, true, &x); !moved) return moved;
  x = parts.Add(type, {x}, form);
  if (Status moved = MoveChannels(op, &parts, false, &x); !moved) return moved;
  return Finish(op, &parts, x, 3, 0);
}

// As ONNX has it, but the channels may be last.
Status LowerContribQLinearConv(Op& op, const Operator& /*row*/) {
  Decomposition parts(op);
  Form form;
  form.copied = {"auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"};
  std::vector<std::string> inputs;
  inputs.reserve(static_cast<std::size_t>(op.inputs()));
  for (int i = 0; i < op.inputs(); ++i) inputs.push_back(parts.In(i));
  const bool last = op.Int("channels_last", 0) != 0;
  if (last) {
    if (Status moved = MoveChannels(op, &parts, true, &inputs[0]); !moved) return moved;
  }
  std::string result = parts.Add("QLinearConv", inputs, form);
  if (last) {
    if (Status moved = MoveChannels(op, &parts, false, &result); !moved) return moved;
  }
  return Finish(op, &parts, result);
}

// Products of integers, times the scales, plus a bias, which may be of float16. The bias and the zeros may be
// "".
Status FinishProduct(Op& op, Decomposition* parts, const std::vector<std::string>& product,
                     const std::string& a_scale, const std::string& b_scale, const std::string& bias) {
  Form to_float;
  to_float.attributes.push_back(IntAttribute("to", onnx::TensorProto::FLOAT));
  const auto floats = [&](const std::string& name) { return parts->Add("Cast", {name}, to_float); };
  const std::string sums = floats(parts->Add("MatMulInteger", product));
  std::string result = parts->Add("Mul", {sums, parts->Add("Mul", {floats(a_scale), floats(b_scale)})});
  if (!bias.empty()) result = parts->Add("Add", {result, floats(bias)});
  return Finish(op, parts, parts->Add("CastLike", {result, b_scale}));
}

// a, b, their scales, their zeros, a bias.
Status LowerMatMulIntegerToFloat(Op& op, const Operator& /*row*/) {
  Decomposition parts(op);
  return FinishProduct(op, &parts, {parts.In(0), parts.In(1), parts.In(4), parts.In(5)}, parts.In(2),
                       parts.In(3), parts.In(6));
}

// a of floats, b, its scale and zero, a bias.
Status LowerDynamicQuantizeMatMul(Op& op, const Operator& /*row*/) {
  Decomposition parts(op);
  Form form;
  form.outputs = 3;
  const std::string a = parts.Add("DynamicQuantizeLinear", {parts.In(0)}, form);
  return FinishProduct(op, &parts, {a, parts.In(1), Decomposition::Output(a, 2), parts.In(3)},
                       Decomposition::Output(a, 1), parts.In(2), parts.In(4));
}

Status LowerOfTwo(Op& op, const Operator& /*row*/) {
  Decomposition parts(op);
  const std::string a = Dequantized(&parts, 0), b = Dequantized(&parts, 3);
  return Finish(op, &parts, parts.Add(op.type().substr(std::string("QLinear").size()), {a, b}), 6, 0);
}

// condition, x and y with scales and zeros, the result's scale and zero.
Status LowerQLinearWhere(Op& op, const Operator& /*row*/) {
  Decomposition parts(op);
  const std::string x = Dequantized(&parts, 1), y = Dequantized(&parts, 4);
  return Finish(op, &parts, parts.Add("Where", {parts.In(0), x, y}), 7, 1);
}

// The result's scale and zero, then the tensors with theirs.
Status LowerQLinearConcat(Op& op, const Operator& /*row*/) {
  if (op.inputs() % 3 != 2)
    return op.Invalid("it has {} inputs, expected 2 and 3 for each tensor", op.inputs());
  for (int i = 0; i < op.inputs(); ++i) {
    if (op.in(i) == nullptr) return op.Invalid("input {} is missing", i);
  }
  Decomposition parts(op);
  std::vector<std::string> tensors;
  for (int i = 2; i < op.inputs(); i += 3) tensors.push_back(Dequantized(&parts, i));
  Form form;
  form.copied = {"axis"};
  return Finish(op, &parts, parts.Add("Concat", tensors, form), 0, 2);
}

// a, its scale and zero, b, its scale and zero, an integer bias, the result's scale and zero. Without a
// scale, the result is of floats. Products of integers have neither a factor nor a transposed left side, so
// the factor becomes one of a's scale and a's bytes are transposed.
Status LowerQGemm(Op& op, const Operator& /*row*/) {
  Decomposition parts(op);
  std::string stored = parts.In(0), a_scale = parts.In(1);
  if (op.Int("transA", 0) != 0) stored = parts.Add("Transpose", {stored});
  if (const double alpha = op.Float("alpha", 1); alpha != 1)
    a_scale = parts.Add("Mul", {a_scale, parts.Name(op.Scalar(kFloat32, alpha))});
  const std::string a = parts.Add("DequantizeLinear", {stored, a_scale, parts.In(2)});
  Form columns;
  columns.attributes.push_back(IntAttribute("axis", op.Int("transB", 0) != 0 ? 0 : 1));
  const std::string b = parts.Add("DequantizeLinear", {parts.In(3), parts.In(4), parts.In(5)}, columns);
  std::vector<std::string> inputs = {a, b};
  if (op.in(6) != nullptr) {
    // The scale of the bias is that of the products.
    Form to_float;
    to_float.attributes.push_back(IntAttribute("to", onnx::TensorProto::FLOAT));
    const std::string bias = parts.Add("Cast", {parts.In(6)}, to_float);
    inputs.push_back(parts.Add("Mul", {bias, parts.Add("Mul", {a_scale, parts.In(4)})}));
  }
  Form form;
  form.copied = {"transB"};
  const std::string product = parts.Add("Gemm", inputs, form);
  if (op.in(7) != nullptr) return Finish(op, &parts, product, 7, 0);
  return Finish(op, &parts, product);
}

Status LowerLinear(Op& op, const Operator& row) {
  Decomposition parts(op);
  Form form;
  form.copied = {"axis", "block_size", "output_dtype", "precision", "saturate"};
  const std::string result = parts.Add(row.type, {parts.In(0), parts.In(1), parts.In(2)}, form);
  return Finish(op, &parts, result);
}

// Constant weights of some bits as floats: elements less the zero, times the scale. `scale` and `zero`
// broadcast to the weights; a zero of "" is 0.
std::string Floats(Decomposition* parts, const std::string& weights, const std::string& scale,
                   const std::string& zero) {
  Form to_float;
  to_float.attributes.push_back(IntAttribute("to", onnx::TensorProto::FLOAT));
  std::string floats = parts->Add("Cast", {weights}, to_float);
  if (!zero.empty()) floats = parts->Add("Sub", {floats, parts->Add("Cast", {zero}, to_float)});
  return parts->Add("Mul", {floats, parts->Add("Cast", {scale}, to_float)});
}

// The weights of one of the layer's two products, as LSTM has them. The inputs are [directions, rows,
// columns], with scales and zeros [directions] or [directions, columns].
Result<std::string> LstmWeights(Op& op, Decomposition* parts, int weights, int scale) {
  std::string factors[2] = {parts->In(scale), parts->In(scale + 1)};
  for (int i = 0; i < 2; ++i) {
    const Value* factor = op.in(scale + i);
    if (factor == nullptr) {
      if (i == 0) return op.Invalid("input {} is missing", scale);
      continue;
    }
    if (factor->type.rank() != 1 && factor->type.rank() != 2) {
      return op.Invalid("input {} is {}, expected rank 1 or 2", scale + i, ShapeText(factor->type.dims));
    }
    Form form;
    form.opset = 11;
    form.attributes.push_back(IntsAttribute("axes", factor->type.rank() == 1 ? Ints{1, 2} : Ints{1}));
    factors[i] = parts->Add("Unsqueeze", {factors[i]}, form);
  }
  Form turned;
  turned.attributes.push_back(IntsAttribute("perm", {0, 2, 1}));
  return parts->Add("Transpose", {Floats(parts, parts->In(weights), factors[0], factors[1])}, turned);
}

// The layer's inputs are not quantized: the result is that of the quantized weights, closer to that of the
// float layer. The pass pack-bytes keeps the weights in 8 bits.
Status LowerDynamicQuantizeLstm(Op& op, const Operator& /*row*/) {
  for (const int i : {0, 1, 2}) {
    if (op.in(i) == nullptr) return op.Invalid("input {} is missing", i);
    if (op.in(i)->type.rank() != 3) {
      return op.Invalid("input {} is {}, expected rank 3", i, ShapeText(op.in(i)->type.dims));
    }
  }
  Decomposition parts(op);
  Result<std::string> w = LstmWeights(op, &parts, 1, 8), r = LstmWeights(op, &parts, 2, 10);
  if (!w) return Forward(w);
  if (!r) return Forward(r);
  std::vector<std::string> inputs = {parts.In(0), *w, *r};
  for (int i = 3; i < 8; ++i) inputs.push_back(parts.In(i));
  Form form;
  form.opset = 14;
  form.outputs = 3;
  form.copied = {"activation_alpha", "activation_beta", "activations", "clip",
                 "direction",        "hidden_size",     "input_forget"};
  const std::string result = parts.Add("LSTM", inputs, form);
  if (!parts.status()) return parts.status();
  for (int i = 0; i < 3; ++i) {
    if (op.Wants(i)) op.Set(i, parts.ValueOf(Decomposition::Output(result, i)));
  }
  return {};
}

// Gives each element of packed rows a byte. Several share a byte, the first one in the lowest bits; each of
// `rows` begins with a byte of its own and has `columns` elements.
Value* Unpacked(Op& op, const Value& packed, std::int64_t bits, Ints shape, std::int64_t rows,
                std::int64_t columns) {
  const HostTensor* stored = ElementsOf(&packed);
  const Span<const std::byte> bytes = stored->bytes.view;
  const auto per_byte = static_cast<std::size_t>(8 / bits), width = static_cast<std::size_t>(columns);
  const std::size_t row_bytes = (width + per_byte - 1) / per_byte;
  std::vector<std::byte> elements(static_cast<std::size_t>(rows) * width);
  for (std::size_t i = 0; i < elements.size(); ++i) {
    const std::size_t column = i % width;
    const int shift = static_cast<int>(column % per_byte) * static_cast<int>(bits);
    const int byte = std::to_integer<int>(bytes[i / width * row_bytes + column / per_byte]);
    elements[i] = static_cast<std::byte>(byte >> shift & ((1 << bits) - 1));
  }
  HostTensor tensor;
  tensor.dtype = kUInt8;
  tensor.shape = std::move(shape);
  tensor.bytes = CopyBytes({elements.data(), elements.size()});
  return op.Constant(std::move(tensor));
}

struct NBits {
  std::int64_t columns = 0, depth = 0, block = 0, blocks = 0, bits = 0;
};

// Checks that B [columns, blocks, bytes of a block] is what the attributes say. Then no product of sizes is
// larger than eight times the bytes of B.
Result<NBits> ReadNBits(const Op& op) {
  NBits form{op.Int("N", 0), op.Int("K", 0), op.Int("block_size", 0), 0, op.Int("bits", 4)};
  const Value* b = op.in(1);
  if (form.bits != 2 && form.bits != 4 && form.bits != 8) {
    return op.Unsupported("bits is {}, expected 2, 4 or 8", form.bits);
  }
  if (!b->IsConstant() || b->type.dtype != kUInt8) {
    return op.Unsupported("input 1 is no constant of 8-bit integers");
  }
  const Ints& dims = b->constant->shape;
  constexpr std::int64_t kMostBlock = std::int64_t{1} << 20, kMostDepth = std::int64_t{1} << 40;
  if (form.block < 1 || form.block > kMostBlock || form.block * form.bits % 8 != 0 || form.depth < 1 ||
      form.depth > kMostDepth) {
    return op.Invalid(
        "K is {} and block_size is {}, expected positive ones that fit, and whole bytes in a block",
        form.depth, form.block);
  }
  form.blocks = form.depth / form.block + (form.depth % form.block != 0 ? 1 : 0);
  const Ints expected = {form.columns, form.blocks, form.block * form.bits / 8};
  if (dims != expected && dims != Ints{expected[0], expected[1] * expected[2]}) {
    return op.Invalid("input 1 is {}, expected {}", ShapeText(ShapeOfInts(dims)),
                      ShapeText(ShapeOfInts(expected)));
  }
  return form;
}

// Checks the block of each row (g_idx). Those that only the run knows are checked by Gather.
Status CheckBlocksOfRows(const Op& op, const NBits& form) {
  const Value* order = op.in(4);
  const DimExpr count = ProductOf(order->type.dims);
  if (order->type.rank() != 1 || !(count.Is(form.depth) || count.Is(form.blocks * form.block))) {
    return op.Invalid("g_idx is {}, expected [{}]", ShapeText(order->type.dims), form.depth);
  }
  const std::optional<Ints> known = KnownInts(order);
  for (const std::int64_t block : known.value_or(Ints())) {
    if (block < 0 || block >= form.blocks)
      return op.Invalid("g_idx has {}, expected 0 to {}", block, form.blocks - 1);
  }
  return {};
}

// Checks the zeros: packed as the weights are, or a float for each block.
Status CheckZeros(const Op& op, const NBits& form) {
  const Value* zero = op.in(3);
  if (zero == nullptr) return {};
  const DimExpr count = ProductOf(zero->type.dims);
  if (zero->type.dtype == kUInt8) {
    const std::int64_t bytes = (form.blocks * form.bits + 7) / 8;
    if (zero->IsConstant() && count.Is(form.columns * bytes)) return {};
    return op.Unsupported("zeros are {}, expected a constant of {} by {}", ShapeText(zero->type.dims),
                          form.columns, bytes);
  }
  if (count.Is(form.columns * form.blocks)) return {};
  return op.Invalid("zeros are {}, expected {} by {}", ShapeText(zero->type.dims), form.columns, form.blocks);
}

// a, b in blocks of few bits, scales, zeros, the block of each row, a bias.
Status LowerMatMulNBits(Op& op, const Operator& /*row*/) {
  const std::int64_t level = op.Int("accuracy_level", 0);
  const Result<NBits> form = ReadNBits(op);
  if (!form) return Forward(form);
  // Not a structured binding: clang 14 does not let lambdas use one.
  const std::int64_t columns = form->columns, depth = form->depth, block = form->block, blocks = form->blocks;
  const std::int64_t bits = form->bits;
  const Ints of_blocks = {columns, blocks, 1};
  const auto has = [&](const Value* value, std::int64_t count) {
    return ProductOf(value->type.dims).Is(count);
  };
  if (!has(op.in(2), columns * blocks)) {
    return op.Invalid("scales are {}, expected {} by {}", ShapeText(op.in(2)->type.dims), columns, blocks);
  }
  Value* zero = op.in(3);
  if (Status fits = CheckZeros(op, *form); !fits) return fits;
  const BlockedWeights weights = {op.in(1), op.in(2), zero, columns, depth, block, bits};
  if (op.in(4) == nullptr && TakesBlockedWeights(*op.in(0), weights)) {
    constexpr std::int64_t kBytes = 4;  // the level at which products may be those of 8-bit integers
    op.Set(0, MultiplyBlocked(op, op.in(0), weights, op.in(5), level == kBytes));
    return {};
  }
  if (zero == nullptr) {
    zero = op.Scalar(kFloat32, static_cast<double>(1 << (bits - 1)));
  } else if (zero->type.dtype == kUInt8) {
    zero = Unpacked(op, *zero, bits, of_blocks, columns, blocks);
  } else {
    zero = op.Reshape(zero, ShapeOfInts(of_blocks));
  }
  if (op.in(4) != nullptr) {
    if (Status ordered = CheckBlocksOfRows(op, *form); !ordered) return ordered;
  }
  Decomposition parts(op);
  const auto ints = [&](const Ints& values) { return parts.Name(op.IntsValue(values)); };
  const auto first_rows = [&](const std::string& x, std::int64_t axis) {
    return blocks * block == depth ? x : parts.Add("Slice", {x, ints({0}), ints({depth}), ints({axis})});
  };
  std::string stored =
      parts.Name(Unpacked(op, *op.in(1), bits, {columns, blocks, block}, columns * blocks, block));
  std::string scales = parts.Name(op.Reshape(op.in(2), ShapeOfInts(of_blocks)));
  std::string zeros = parts.Name(zero);
  if (op.in(4) != nullptr) {
    // A scale and a zero for each row of each column.
    Form along;
    along.attributes.push_back(IntAttribute("axis", 1));
    std::string order = parts.In(4);
    if (!ProductOf(op.in(4)->type.dims).Is(depth)) order = first_rows(order, 0);
    const auto of_rows = [&](const std::string& x) {
      return parts.Add("Gather", {parts.Add("Reshape", {x, ints({columns, blocks})}), order}, along);
    };
    stored = first_rows(parts.Add("Reshape", {stored, ints({columns, blocks * block})}), 1);
    scales = of_rows(scales);
    if (zero->type.rank() > 0) zeros = of_rows(zeros);
  }
  std::string w = Floats(&parts, stored, scales, zeros);
  if (op.in(4) == nullptr) w = first_rows(parts.Add("Reshape", {w, ints({columns, blocks * block})}), 1);
  w = parts.Add("CastLike", {parts.Add("Transpose", {w}), parts.In(0)});
  std::string product = parts.Add("MatMul", {parts.In(0), w});
  if (op.in(5) != nullptr) product = parts.Add("Add", {product, parts.In(5)});
  return Finish(op, &parts, product);
}

}  // namespace

std::span<const Operator> ContribQuantizationOperators() {
  static constexpr Operator kOperators[] = {
      {"DequantizeLinear", 1, 1, 2, 3, "axis block_size output_dtype", LowerLinear},
      {"DynamicQuantizeMatMul", 1, 1, 3, 5, "", LowerDynamicQuantizeMatMul},
      {"DynamicQuantizeLSTM", 1, 1, 12, 12,
       "activation_alpha activation_beta activations clip direction hidden_size input_forget",
       LowerDynamicQuantizeLstm, nullptr, kMayLack},
      {"MatMulIntegerToFloat", 1, 1, 4, 7, "", LowerMatMulIntegerToFloat},
      {"MatMulNBits", 1, 1, 3, 6, "K N accuracy_level bits block_size", LowerMatMulNBits},
      {"QGemm", 1, 1, 6, 9, "alpha transA transB", LowerQGemm},
      {"QLinearAdd", 1, 1, 7, 8, "", LowerOfTwo, nullptr, kMayLack},
      {"QLinearAveragePool", 1, 1, 4, 5,
       "auto_pad ceil_mode channels_last count_include_pad kernel_shape pads strides", LowerOfOne, nullptr,
       kMayLack},
      {"QLinearConcat", 1, 1, 5, kAnyNumber, "axis", LowerQLinearConcat},
      {"QLinearConv", 1, 1, 8, 9, "auto_pad channels_last dilations group kernel_shape pads strides",
       LowerContribQLinearConv},
      {"QLinearGlobalAveragePool", 1, 1, 5, 5, "channels_last", LowerOfOne},
      {"QLinearLeakyRelu", 1, 1, 4, 5, "alpha", LowerOfOne, nullptr, kMayLack},
      {"QLinearMul", 1, 1, 7, 8, "", LowerOfTwo, nullptr, kMayLack},
      {"QLinearReduceMean", 1, 1, 4, 5, "axes keepdims", LowerOfOne, nullptr, kMayLack},
      {"QLinearSigmoid", 1, 1, 4, 5, "", LowerOfOne, nullptr, kMayLack},
      {"QLinearSoftmax", 1, 1, 4, 5, "axis opset", LowerOfOne, nullptr, kMayLack},
      {"QLinearWhere", 1, 1, 9, 9, "", LowerQLinearWhere},
      {"QuantizeLinear", 1, 1, 2, 3, "axis block_size output_dtype precision=0 ~saturate", LowerLinear},
  };
  return kOperators;
}

}  // namespace rewire::compiler
