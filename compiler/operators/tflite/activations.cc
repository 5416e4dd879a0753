// SPDX-License-Identifier: Apache-2.0
//
// Functions of single elements of .tflite files, and softmax. A function of a byte is a table of 256 bytes.
#include <algorithm>
#include <cmath>
#include <functional>

#include "rewire/compiler/operators/float_constant.h"
#include "rewire/compiler/operators/tflite/node.h"
#include "rewire/compiler/operators/tflite_operators.h"
#include "rewire/kernels/contract/quantization.h"

namespace rewire::compiler {
namespace {

constexpr int kByteValues = 256;

// The scales and zero points of a function's input and output.
struct Scales {
  float x, out;
  std::int64_t x_zero, out_zero, least;  // of the output's dtype
};

// Looks up the byte that `function` gives, without limits, for each byte less the input's zero point.
Status MapBytes(Op& op, TfliteNode* node,
                const std::function<std::int64_t(std::int64_t, const Scales&)>& function) {
  const TfliteNode::Operand x = node->in(0), out = node->out();
  if (!x.OneScale() || !x.OneZero() || !out.OneScale() || !out.OneZero())
    return op.Unsupported("its input or output has no scale, or several");
  const DLDataType dtype = x.value->type.dtype, to = out.zero->type.dtype;
  if (to != kInt8 && to != kUInt8) return op.Unsupported("its output is {}", DTypeName(to));
  const Scales scales = {*x.OneScale(), *out.OneScale(), *x.OneZero(), *out.OneZero(),
                         to == kInt8 ? -128 : 0};
  std::vector<std::byte> table(kByteValues);
  for (int i = 0; i < kByteValues; ++i) {
    const int stored = dtype == kInt8 ? static_cast<std::int8_t>(i) : i;
    const std::int64_t byte = function(stored - scales.x_zero, scales) + scales.out_zero;
    table[static_cast<std::size_t>(i)] =
        static_cast<std::byte>(std::clamp(byte, scales.least, scales.least + kByteValues - 1));
  }
  HostTensor entries;
  entries.dtype = to;
  entries.shape = {kByteValues};
  entries.bytes = CopyBytes({table.data(), table.size()});
  return node->Set(op.Call(names::kMapBytes, {x.value, op.Constant(std::move(entries))}, {},
                           TensorOf(to, x.value->type.dims)));
}

// The nearest and even integer, held where no byte can come from.
std::int64_t RoundedByte(float value) {
  constexpr float kFar = 1 << 20;
  return static_cast<std::int64_t>(std::clamp(std::nearbyint(value), -kFar, kFar));
}

// A difference of bytes in steps of the output, as LiteRT's own kernels scale it: by a fixed-point factor of
// 31 bits, whose product is rounded twice, to 32 bits and to an integer, both times away from 0 in the
// middle.
std::int64_t InSteps(std::int64_t difference, const Scales& scales) {
  int exponent = 0;
  const double fraction = std::frexp(double{scales.x} / double{scales.out}, &exponent);
  constexpr int kFractionBits = 31;
  std::int64_t factor = std::llround(std::ldexp(fraction, kFractionBits));
  if (factor == std::int64_t{1} << kFractionBits) {
    factor /= 2;
    ++exponent;
  }
  // Such factors leave 0, or every byte outside of its range.
  if (exponent < -kFractionBits) return 0;
  if (exponent > 20) return difference << 20;
  const std::int64_t product = (difference << std::max(exponent, 0)) * factor;
  const std::int64_t half = std::int64_t{1} << (kFractionBits - 1);
  const std::int64_t high = (product + (product >= 0 ? half : 1 - half)) / (std::int64_t{1} << kFractionBits);
  const int shift = std::max(-exponent, 0);
  const std::int64_t rest = high & ((std::int64_t{1} << shift) - 1);
  const std::int64_t middle = ((std::int64_t{1} << shift) >> 1) + (shift > 0 && high < 0 ? 1 : 0);
  return (high >> shift) + (shift > 0 && rest >= middle ? 1 : 0);
}

// A function of floats by ONNX's operator, and of bytes by a table.
struct Function {
  const char* type;  // of TensorFlow Lite
  const char* onnx;
  std::int64_t (*of_byte)(std::int64_t difference, const Scales& scales);
};

float RealOf(std::int64_t difference, const Scales& scales) {
  return static_cast<float>(difference) * scales.x;
}

constexpr Function kFunctions[] = {
    {"LOGISTIC", "Sigmoid",
     [](std::int64_t difference, const Scales& scales) {
       return RoundedByte(1.0F / (1.0F + std::exp(-RealOf(difference, scales))) / scales.out);
     }},
    {"RELU", "Relu",
     [](std::int64_t difference, const Scales& scales) {
       return std::max(InSteps(difference, scales), std::int64_t{0});
     }},
    {"RELU6", "Clip",
     [](std::int64_t difference, const Scales& scales) {
       return std::clamp(InSteps(difference, scales), std::int64_t{0},
                         static_cast<std::int64_t>(std::round(std::min(6.0F / scales.out, 1e6F))));
     }},
    {"TANH", "Tanh",
     [](std::int64_t difference, const Scales& scales) {
       return RoundedByte(std::tanh(RealOf(difference, scales)) / scales.out);
     }},
};

Status LowerFunction(Op& op, const Operator& row) {
  TfliteNode node(op);
  if (Status fits = node.Check(1, 1); !fits) return fits;
  const auto* function =
      std::find_if(std::begin(kFunctions), std::end(kFunctions),
                   [&](const Function& each) { return std::string_view(each.type) == row.type; });
  if (node.in(0).IsBytes()) return MapBytes(op, &node, function->of_byte);
  if (!node.in(0).IsFloats()) return op.Unsupported("input 0 is {}", TypeText(node.in(0).value->type));
  std::vector<std::string> inputs = {node.parts.Name(node.in(0).value)};
  if (std::string_view(function->onnx) == "Clip") {
    inputs.push_back(node.parts.Name(op.Scalar(kFloat32, 0)));
    inputs.push_back(node.parts.Name(op.Scalar(kFloat32, 6)));
  }
  return node.Set(node.parts.Add(function->onnx, inputs));
}

// From floats, or from bytes of another scale.
Status LowerTfliteQuantize(Op& op, const Operator& /*row*/) {
  TfliteNode node(op);
  if (Status fits = node.Check(1, 1); !fits) return fits;
  const TfliteNode::Operand x = node.in(0), out = node.out();
  if (x.IsBytes()) {
    // The factor between the scales has 8 bits behind the point.
    return MapBytes(op, &node, [](std::int64_t difference, const Scales& scales) {
      constexpr int kBits = 8;
      const std::int64_t factor = RoundedByte(scales.x / scales.out * (1 << kBits));
      return (difference * factor + (1 << (kBits - 1))) >> kBits;
    });
  }
  if (!x.IsFloats()) return op.Unsupported("input 0 is {}", TypeText(x.value->type));
  if (!out.OneScale() || !out.OneZero()) return op.Unsupported("its output has no scale, or several");
  return node.Set(node.parts.Add(
      "QuantizeLinear", {node.parts.Name(x.value), node.parts.Name(out.scale), node.parts.Name(out.zero)}));
}

Status LowerTfliteDequantize(Op& op, const Operator& /*row*/) {
  TfliteNode node(op);
  if (Status fits = node.Check(1, 1); !fits) return fits;
  const TfliteNode::Operand x = node.in(0);
  if (!x.IsBytes() || !x.OneScale() || !x.OneZero())
    return op.Unsupported("input 0 is {}, expected bytes with one scale", TypeText(x.value->type));
  return node.Set(node.parts.Add(
      "DequantizeLinear", {node.parts.Name(x.value), node.parts.Name(x.scale), node.parts.Name(x.zero)}));
}

// exp(-beta * scale * d) for each difference d of two bytes, from 0 to -255.
Value* PowersOf(Op& op, float scale, float beta) {
  std::vector<double> powers;
  for (int i = 1 - kByteValues; i <= 0; ++i) powers.push_back(std::exp(scale * beta * static_cast<float>(i)));
  return FloatsValue(op, powers);
}

// Bytes: powers are looked up, added one by one from the front, and scaled in f32.
Status SoftmaxOfBytes(Op& op, TfliteNode* node, float beta) {
  const TfliteNode::Operand x = node->in(0), out = node->out();
  if (Status fits = node->CheckAllOneKind({0}); !fits) return fits;
  constexpr std::int64_t kMostClasses = 64;
  const Shape& dims = x.value->type.dims;
  const auto count = dims.empty() ? std::nullopt : dims.back().constant();
  if (!count || *count < 1 || *count > kMostClasses)
    return op.Unsupported("softmax over {}, expected 1 to {} bytes", TypeText(x.value->type), kMostClasses);
  Decomposition& parts = node->parts;
  const auto integers = [&](const std::string& bytes) {
    return parts.Add("Cast", {bytes}, FormOf({IntAttribute("to", onnx::TensorProto::INT32)}));
  };
  const auto last = parts.Name(op.IntsValue({-1}));
  const std::string largest =
      parts.Add("ReduceMax", {parts.Name(x.value), last}, FormOf({IntAttribute("keepdims", 1)}));
  const std::string places =
      parts.Add("Add", {parts.Add("Sub", {integers(parts.Name(x.value)), integers(largest)}),
                        parts.Name(op.Scalar(kInt32, kByteValues - 1))});
  const std::string powers = parts.Add("Gather", {parts.Name(PowersOf(op, *x.OneScale(), beta)), places});
  Decomposition::Form each = FormOf({IntAttribute("axis", -1)});
  each.outputs = static_cast<int>(*count);
  const std::string first =
      parts.Add("Split", {powers, parts.Name(op.IntsValue(Ints(static_cast<std::size_t>(*count), 1)))}, each);
  std::string sum = first;
  for (int i = 1; i < each.outputs; ++i) sum = parts.Add("Add", {sum, Decomposition::Output(first, i)});
  const std::string scaled = parts.Add("Mul", {sum, parts.Name(op.Scalar(kFloat32, *out.OneScale()))});
  const std::string factor = parts.Add("Div", {parts.Name(op.Scalar(kFloat32, 1)), scaled});
  return node->Set(parts.Add("QuantizeLinear", {parts.Add("Mul", {powers, factor}),
                                                parts.Name(op.Scalar(kFloat32, 1)), parts.Name(out.zero)}));
}

Status LowerTfliteSoftmax(Op& op, const Operator& /*row*/) {
  TfliteNode node(op);
  if (Status fits = node.Check(1, 1); !fits) return fits;
  const double beta = op.Float("beta", 0);
  if (node.in(0).IsBytes()) return SoftmaxOfBytes(op, &node, static_cast<float>(beta));
  if (!node.in(0).IsFloats()) return op.Unsupported("input 0 is {}", TypeText(node.in(0).value->type));
  std::string x = node.parts.Name(node.in(0).value);
  if (beta != 1) x = node.parts.Add("Mul", {x, node.parts.Name(op.Scalar(kFloat32, beta))});
  return node.Set(node.parts.Add("Softmax", {x}, FormOf({IntAttribute("axis", -1)})));
}

}  // namespace

std::span<const Operator> TfliteActivationOperators() {
  static constexpr Operator kOperators[] = {
      {"DEQUANTIZE", 1, 0, 3, kAnyNumber, "", LowerTfliteDequantize, nullptr, kMayLack},
      {"LOGISTIC", 1, 0, 3, kAnyNumber, "", LowerFunction, nullptr, kMayLack},
      {"QUANTIZE", 1, 0, 3, kAnyNumber, "", LowerTfliteQuantize, nullptr, kMayLack},
      {"RELU", 1, 0, 3, kAnyNumber, "", LowerFunction, nullptr, kMayLack},
      {"RELU6", 1, 0, 3, kAnyNumber, "", LowerFunction, nullptr, kMayLack},
      {"SOFTMAX", 1, 0, 3, kAnyNumber, "beta", LowerTfliteSoftmax, nullptr, kMayLack},
      {"TANH", 1, 0, 3, kAnyNumber, "", LowerFunction, nullptr, kMayLack},
  };
  return kOperators;
}

}  // namespace rewire::compiler
