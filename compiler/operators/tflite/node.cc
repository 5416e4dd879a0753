// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/operators/tflite/node.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace rewire::compiler {
namespace {

// Values of fused_activation_function.
enum Activation : std::uint8_t { kNone = 0, kRelu = 1, kReluN1To1 = 2, kRelu6 = 3 };

struct Range {
  double least, most;
};

// The elements of a constant zero point, which has the dtype of what it belongs to.
std::optional<Ints> ZerosOf(const Value* value) {
  const HostTensor* tensor = ElementsOf(value);
  if (tensor == nullptr) return std::nullopt;
  const Span<const std::byte> bytes = tensor->bytes.view;
  Ints zeros;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (tensor->dtype == kInt8) {
      zeros.push_back(static_cast<std::int8_t>(bytes.data()[i]));
    } else if (tensor->dtype == kUInt8) {
      zeros.push_back(static_cast<std::uint8_t>(bytes.data()[i]));
    } else {
      return std::nullopt;
    }
  }
  return zeros;
}

// Values of padding.
enum Padding : std::uint8_t { kSame = 0, kValid = 1 };

// The stored byte of a real number, held in the range of the bytes.
std::int64_t StoredOf(double real, float scale, std::int64_t zero, DLDataType dtype) {
  const double least = dtype == kInt8 ? -128 : 0;
  const double stored = std::nearbyint(static_cast<float>(real) / scale) + static_cast<double>(zero);
  return static_cast<std::int64_t>(std::clamp(stored, least, least + 255));
}

}  // namespace

bool TfliteNode::Operand::IsBytes() const {
  return value != nullptr && value->type.IsTensor() &&
         (value->type.dtype == kInt8 || value->type.dtype == kUInt8);
}

bool TfliteNode::Operand::IsFloats() const {
  return value != nullptr && value->type.IsTensor() && value->type.dtype == kFloat32;
}

std::optional<float> TfliteNode::Operand::OneScale() const {
  const auto scales = scale == nullptr ? std::nullopt : KnownFloats(scale);
  if (!scales || scales->size() != 1) return std::nullopt;
  return static_cast<float>(scales->front());
}

std::optional<std::int64_t> TfliteNode::Operand::OneZero() const {
  const auto zeros = zero == nullptr ? std::nullopt : ZerosOf(zero);
  return zeros && zeros->size() == 1 ? std::optional(zeros->front()) : std::nullopt;
}

TfliteNode::Operand TfliteNode::in(int i) const {
  if (i >= inputs_) return {};
  return {op_.in(i), op_.in(inputs_ + 2 * i), op_.in(inputs_ + 2 * i + 1)};
}

TfliteNode::Operand TfliteNode::out(int i) const {
  return {nullptr, op_.in(3 * inputs_ + 2 * i), op_.in(3 * inputs_ + 2 * i + 1)};
}

Status TfliteNode::Check(int least, int most, int outputs) const {
  if (op_.outputs() != outputs) return op_.Invalid("it has {} outputs, expected {}", op_.outputs(), outputs);
  if ((op_.inputs() - 2 * outputs) % 3 != 0 || inputs_ < least || inputs_ > most)
    return op_.Invalid("it has {} inputs, expected {} to {}", inputs_, least, most);
  for (int i = 0; i < inputs_; ++i) {
    if (i < least && op_.in(i) == nullptr) return op_.Invalid("input {} is missing", i);
  }
  for (int i = inputs_; i < op_.inputs(); ++i) {
    const Value* given = op_.in(i);
    if (given == nullptr) continue;
    const bool is_scale = (i - inputs_) % 2 == 0;
    if (is_scale ? !KnownFloats(given).has_value() : !ZerosOf(given).has_value())
      return op_.Unsupported("its {} is no constant{}", is_scale ? "scale" : "zero point",
                             is_scale ? "" : " of bytes");
  }
  return {};
}

Status TfliteNode::CheckAllOneKind(const std::vector<int>& inputs, int per_channel) const {
  const bool floats = in(inputs.front()).IsFloats();
  for (const int i : inputs) {
    const Operand operand = in(i);
    if (floats ? !operand.IsFloats() : !operand.IsBytes()) {
      return op_.Unsupported("input {} is {} beside an input 0 of {}, expected f32 for all or bytes for all",
                             i, TypeText(operand.value->type), TypeText(in(0).value->type));
    }
    if (floats) continue;
    if (operand.scale == nullptr || operand.zero == nullptr || (i != per_channel && !operand.OneScale()))
      return op_.Unsupported("input {} has no scale, or several", i);
  }
  if (!floats && (!out().OneScale() || !out().OneZero())) return op_.Unsupported("its output has no scale");
  return {};
}

Result<std::string> TfliteNode::Activated(const std::string& result, bool bytes) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const std::int64_t which = op_.Int("fused_activation_function", kNone);
  Range range{0, kInfinity};
  switch (which) {
    case kNone:
      return result;
    case kRelu:
      break;
    case kReluN1To1:
      range = {-1, 1};
      break;
    case kRelu6:
      range = {0, 6};
      break;
    default:
      return op_.Unsupported(
          "attribute fused_activation_function is {}, expected none, RELU, RELU_N1_TO_1 or RELU6", which);
  }
  if (!bytes) {
    if (which == kRelu) return parts.Add("Relu", {result});
    return parts.Add("Clip", {result, parts.Name(op_.Scalar(kFloat32, range.least)),
                              parts.Name(op_.Scalar(kFloat32, range.most))});
  }
  const DLDataType dtype = out().zero->type.dtype;
  const float scale = *out().OneScale();
  const std::int64_t zero = *out().OneZero();
  const std::int64_t lowest = dtype == kInt8 ? -128 : 0;
  const std::int64_t least = StoredOf(range.least, scale, zero, dtype);
  const std::int64_t most = range.most == kInfinity ? lowest + 255 : StoredOf(range.most, scale, zero, dtype);
  if (least == lowest && most == lowest + 255) return result;
  return parts.Add("Clip", {result, parts.Name(op_.Scalar(dtype, static_cast<double>(least))),
                            parts.Name(op_.Scalar(dtype, static_cast<double>(most)))});
}

std::string TfliteNode::Transposed(const std::string& value, const Ints& perm) {
  return parts.Add("Transpose", {value}, FormOf({IntsAttribute("perm", perm)}));
}

Status TfliteNode::Set(const std::string& result) {
  if (!parts.status()) return parts.status();
  return Set(parts.ValueOf(result));
}

Status TfliteNode::Set(Value* value) {
  if (!parts.status()) return parts.status();
  op_.Set(0, value);
  return {};
}

Result<std::vector<onnx::AttributeProto>> WindowOf(const Op& op) {
  const std::int64_t padding = op.Int("padding", kSame);
  if (padding != kSame && padding != kValid) return op.Invalid("padding is {}, expected 0 or 1", padding);
  std::vector<onnx::AttributeProto> window = {
      IntsAttribute("strides", {op.Int("stride_h", 1), op.Int("stride_w", 1)}),
      TextAttribute("auto_pad", padding == kSame ? "SAME_UPPER" : "VALID")};
  if (op.HasAttribute("dilation_h_factor")) {
    window.push_back(
        IntsAttribute("dilations", {op.Int("dilation_h_factor", 1), op.Int("dilation_w_factor", 1)}));
  }
  return window;
}

Decomposition::Form FormOf(std::vector<onnx::AttributeProto> attributes) {
  Decomposition::Form form;
  form.attributes = std::move(attributes);
  return form;
}

onnx::AttributeProto TextAttribute(const std::string& name, const std::string& value) {
  onnx::AttributeProto attribute;
  attribute.set_name(name);
  attribute.set_type(onnx::AttributeProto::STRING);
  attribute.set_s(value);
  return attribute;
}

}  // namespace rewire::compiler
