// SPDX-License-Identifier: Apache-2.0
//
// Pools, means and elementwise arithmetic of .tflite files. Bytes are computed in 32 bits, and rounded as
// LiteRT rounds them: by XNNPACK where that has the operator, else by its own kernels.
#include <algorithm>
#include <cmath>
#include <limits>

#include "rewire/compiler/operators/tflite/node.h"
#include "rewire/compiler/operators/tflite_operators.h"

namespace rewire::compiler {
namespace {

constexpr int kLeastShift = 1, kMostShift = 30;

std::string IntegerConstant(Op& op, TfliteNode* node, std::int64_t value) {
  return node->parts.Name(op.Scalar(kInt32, static_cast<double>(value)));
}

std::string AsIntegers(TfliteNode* node, Value* bytes) {
  return node->parts.Add("Cast", {node->parts.Name(bytes)},
                         FormOf({IntAttribute("to", onnx::TensorProto::INT32)}));
}

// An i32 result as bytes of the output's dtype, held between the limits of its activation.
Status SetClipped(Op& op, TfliteNode* node, const std::string& result) {
  const bool is_signed = node->out().zero->type.dtype == kInt8;
  const std::int64_t least = is_signed ? -128 : 0;
  const std::string clipped = node->parts.Add(
      "Clip", {result, IntegerConstant(op, node, least), IntegerConstant(op, node, least + 255)});
  const std::string bytes = node->parts.Add(
      "Cast", {clipped},
      FormOf({IntAttribute("to", is_signed ? onnx::TensorProto::INT8 : onnx::TensorProto::UINT8)}));
  const Result<std::string> activated = node->Activated(bytes, true);
  if (!activated) return Forward(activated);
  return node->Set(*activated);
}

// An i32 result times `scale` in f32, rounded to the nearest and even integer: of the product, or with
// `zero_first` of the product and the zero point.
Status SetScaled(Op& op, TfliteNode* node, const std::string& sums, float scale, bool zero_first) {
  Decomposition& parts = node->parts;
  const std::string floats =
      parts.Add("Cast", {sums}, FormOf({IntAttribute("to", onnx::TensorProto::FLOAT)}));
  std::string scaled = parts.Add("Mul", {floats, parts.Name(op.Scalar(kFloat32, scale))});
  Value* zero = node->out().zero;
  if (zero_first) {
    const auto shift = static_cast<double>(*node->out().OneZero());
    scaled = parts.Add("Add", {scaled, parts.Name(op.Scalar(kFloat32, shift))});
    zero = op.Scalar(zero->type.dtype, 0);
  }
  const std::string bytes =
      parts.Add("QuantizeLinear", {scaled, parts.Name(op.Scalar(kFloat32, 1)), parts.Name(zero)});
  const Result<std::string> activated = node->Activated(bytes, true);
  if (!activated) return Forward(activated);
  return node->Set(*activated);
}

Status LowerTfliteMaxPool(Op& op, const Operator& /*row*/) {
  TfliteNode node(op);
  if (Status fits = node.Check(1, 1); !fits) return fits;
  if (Status fits = node.CheckAllOneKind({0}); !fits) return fits;
  Result<std::vector<onnx::AttributeProto>> window = WindowOf(op);
  if (!window) return Forward(window);
  window->push_back(IntsAttribute("kernel_shape", {op.Int("filter_height", 0), op.Int("filter_width", 0)}));
  if (node.in(0).value->type.rank() != 4)
    return op.Invalid("input 0 is {}, expected rank 4", TypeText(node.in(0).value->type));
  const std::string image = node.Transposed(node.parts.Name(node.in(0).value), {0, 3, 1, 2});
  const std::string pooled = node.parts.Add("MaxPool", {image}, FormOf(*std::move(window)));
  const Result<std::string> activated = node.Activated(pooled, node.in(0).IsBytes());
  if (!activated) return Forward(activated);
  return node.Set(node.Transposed(*activated, {0, 2, 3, 1}));
}

// Sums of the bytes that a window covers, and how many it covers, both [1, 1, rows, columns] or with
// channels.
Status LowerTfliteAveragePool(Op& op, const Operator& /*row*/) {
  TfliteNode node(op);
  if (Status fits = node.Check(1, 1); !fits) return fits;
  if (Status fits = node.CheckAllOneKind({0}); !fits) return fits;
  const Type& type = node.in(0).value->type;
  if (type.rank() != 4) return op.Invalid("input 0 is {}, expected rank 4", TypeText(type));
  Result<std::vector<onnx::AttributeProto>> window = WindowOf(op);
  if (!window) return Forward(window);
  const Ints kernel = {op.Int("filter_height", 0), op.Int("filter_width", 0)};
  Decomposition& parts = node.parts;
  const std::string image = node.Transposed(parts.Name(node.in(0).value), {0, 3, 1, 2});
  if (!node.in(0).IsBytes()) {
    window->push_back(IntsAttribute("kernel_shape", kernel));
    const Result<std::string> activated =
        node.Activated(parts.Add("AveragePool", {image}, FormOf(*std::move(window))), false);
    if (!activated) return Forward(activated);
    return node.Set(node.Transposed(*activated, {0, 2, 3, 1}));
  }
  if (node.in(0).OneScale() != node.out().OneScale() || node.in(0).OneZero() != node.out().OneZero())
    return op.Unsupported("its input and output have different scales or zero points");
  if (node.in(0).value->type.dtype != kInt8) return op.Unsupported("its bytes are {}", DTypeName(type.dtype));
  const auto rows = type.dims[1].constant(), columns = type.dims[2].constant(),
             channels = type.dims[3].constant();
  constexpr std::int64_t kMostTaps = 1 << 16;  // sums of bytes then fit into 24 bits
  for (const std::int64_t size : kernel) {
    if (size < 1 || size > kMostTaps) return op.Invalid("its window is {} x {}", kernel[0], kernel[1]);
  }
  if (!rows || !columns || !channels || kernel[0] * kernel[1] > kMostTaps)
    return op.Unsupported("{} by a window of {} x {}", TypeText(type), kernel[0], kernel[1]);
  // Convolutions by ones. What lies outside of the image counts as 0.
  const auto ones = [&](std::int64_t count, const Ints& shape) {
    HostTensor tensor;
    tensor.dtype = kInt8;
    tensor.shape = shape;
    const std::vector<std::byte> bytes(static_cast<std::size_t>(count), std::byte{1});
    tensor.bytes = CopyBytes({bytes.data(), bytes.size()});
    return parts.Name(op.Constant(std::move(tensor)));
  };
  const std::int64_t taps = kernel[0] * kernel[1];
  std::vector<onnx::AttributeProto> of_counts = *window;
  window->push_back(IntAttribute("group", *channels));
  const std::string sums =
      parts.Add("ConvInteger", {image, ones(*channels * taps, {*channels, 1, kernel[0], kernel[1]})},
                FormOf(*std::move(window)));
  const std::string counts =
      parts.Add("ConvInteger",
                {ones(*rows * *columns, {1, 1, *rows, *columns}), ones(taps, {1, 1, kernel[0], kernel[1]})},
                FormOf(of_counts));
  // Rounded away from 0 in the middle: division rounds toward 0.
  const std::string half = parts.Add("Div", {counts, IntegerConstant(op, &node, 2)});
  const std::string is_positive = parts.Add("Greater", {sums, IntegerConstant(op, &node, 0)});
  const std::string more = parts.Add("Where", {is_positive, half, parts.Add("Neg", {half})});
  const std::string mean = parts.Add("Div", {parts.Add("Add", {sums, more}), counts});
  if (!parts.status()) return parts.status();
  return SetClipped(op, &node, node.Transposed(mean, {0, 2, 3, 1}));
}

Status LowerTfliteMean(Op& op, const Operator& /*row*/) {
  TfliteNode node(op);
  if (Status fits = node.Check(2, 2); !fits) return fits;
  if (Status fits = node.CheckAllOneKind({0}); !fits) return fits;
  const Type& type = node.in(0).value->type;
  const std::optional<Ints> given = KnownInts(node.in(1).value);
  if (!given) return op.Unsupported("input 1 is no constant");
  std::int64_t count = 1;
  Ints axes;
  for (const std::int64_t each : *given) {
    const Result<int> axis = op.Axis(each, type.rank());
    if (!axis) return Forward(axis);
    const auto size = type.dims[static_cast<std::size_t>(*axis)].constant();
    if (!size || *size < 1 || count * *size > (1 << 22))
      return op.Unsupported("{} over axis {}", TypeText(type), each);
    count *= *size;
    axes.push_back(*axis);
  }
  const auto reduce = [&](const char* what, const std::string& x) {
    return node.parts.Add(what, {x, node.parts.Name(op.IntsValue(axes))},
                          FormOf({IntAttribute("keepdims", op.Int("keep_dims", 0) != 0 ? 1 : 0)}));
  };
  if (!node.in(0).IsBytes()) return node.Set(reduce("ReduceMean", node.parts.Name(node.in(0).value)));
  const std::string differences = node.parts.Add(
      "Sub", {AsIntegers(&node, node.in(0).value), IntegerConstant(op, &node, *node.in(0).OneZero())});
  return SetScaled(op, &node, reduce("ReduceSum", differences),
                   *node.in(0).OneScale() / *node.out().OneScale() / static_cast<float>(count), true);
}

// a + b or a - b. Each is scaled by a factor of 21 bits, so that the sum has `shift` bits behind the point.
Status AddBytes(Op& op, TfliteNode* node, int sign) {
  const float scale = *node->out().OneScale();
  float ratios[2];
  std::int64_t factors[2], least = 0, most = 0;
  for (const int i : {0, 1}) ratios[i] = *node->in(i).OneScale() / scale;
  constexpr int kFactorBits = 20;
  const int shift = kFactorBits - std::ilogb(std::max(ratios[0], ratios[1]));
  if (shift < kLeastShift || shift > kMostShift) return op.Unsupported("its scales are too far apart");
  for (const int i : {0, 1}) {
    const std::int64_t lowest = node->in(i).value->type.dtype == kInt8 ? -128 : 0;
    factors[i] = std::llrint(std::ldexp(ratios[i], shift)) * (i == 1 ? sign : 1);
    const std::int64_t ends[] = {(lowest - *node->in(i).OneZero()) * factors[i],
                                 (lowest + 255 - *node->in(i).OneZero()) * factors[i]};
    least += std::min(ends[0], ends[1]);
    most += std::max(ends[0], ends[1]);
  }
  // Division rounds toward 0, so a multiple of its divisor is added that leaves no negative number.
  const std::int64_t unit = std::int64_t{1} << shift,
                     up = (std::max(-least, std::int64_t{0}) + unit - 1) / unit;
  if (most + unit / 2 + up * unit > std::numeric_limits<std::int32_t>::max())
    return op.Unsupported("its scales are too far apart");
  std::string sum;
  for (const int i : {0, 1}) {
    const std::string difference = node->parts.Add(
        "Sub", {AsIntegers(node, node->in(i).value), IntegerConstant(op, node, *node->in(i).OneZero())});
    const std::string term = node->parts.Add("Mul", {difference, IntegerConstant(op, node, factors[i])});
    sum = i == 0 ? term : node->parts.Add("Add", {sum, term});
  }
  sum = node->parts.Add("Add", {sum, IntegerConstant(op, node, unit / 2 + up * unit)});
  sum = node->parts.Add("Div", {sum, IntegerConstant(op, node, unit)});
  sum = node->parts.Add("Add", {sum, IntegerConstant(op, node, *node->out().OneZero() - up)});
  return SetClipped(op, node, sum);
}

Status LowerArithmetic(Op& op, const Operator& row) {
  TfliteNode node(op);
  if (Status fits = node.Check(2, 2); !fits) return fits;
  if (Status fits = node.CheckAllOneKind({0, 1}); !fits) return fits;
  const std::string_view type = row.type;
  if (!node.in(0).IsBytes()) {
    const char* name = type == "ADD" ? "Add" : type == "SUB" ? "Sub" : "Mul";
    const std::string result =
        node.parts.Add(name, {node.parts.Name(node.in(0).value), node.parts.Name(node.in(1).value)});
    const Result<std::string> activated = node.Activated(result, false);
    if (!activated) return Forward(activated);
    return node.Set(*activated);
  }
  if (type != "MUL") return AddBytes(op, &node, type == "ADD" ? 1 : -1);
  std::string factors[2];
  for (const int i : {0, 1}) {
    factors[i] = node.parts.Add(
        "Sub", {AsIntegers(&node, node.in(i).value), IntegerConstant(op, &node, *node.in(i).OneZero())});
  }
  return SetScaled(op, &node, node.parts.Add("Mul", {factors[0], factors[1]}),
                   *node.in(0).OneScale() * *node.in(1).OneScale() / *node.out().OneScale(), false);
}

}  // namespace

std::span<const Operator> TfliteArithmeticOperators() {
  static constexpr const char kPool[] =
      "filter_height filter_width fused_activation_function padding stride_h stride_w";
  static constexpr Operator kOperators[] = {
      {"ADD", 1, 0, 3, kAnyNumber, "fused_activation_function", LowerArithmetic, nullptr, kMayLack},
      {"AVERAGE_POOL_2D", 1, 0, 3, kAnyNumber, kPool, LowerTfliteAveragePool, nullptr, kMayLack},
      {"MAX_POOL_2D", 1, 0, 3, kAnyNumber, kPool, LowerTfliteMaxPool, nullptr, kMayLack},
      {"MEAN", 1, 0, 3, kAnyNumber, "keep_dims", LowerTfliteMean, nullptr, kMayLack},
      {"MUL", 1, 0, 3, kAnyNumber, "fused_activation_function", LowerArithmetic, nullptr, kMayLack},
      {"SUB", 1, 0, 3, kAnyNumber, "fused_activation_function", LowerArithmetic, nullptr, kMayLack},
  };
  return kOperators;
}

}  // namespace rewire::compiler
