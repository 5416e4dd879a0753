// SPDX-License-Identifier: Apache-2.0
#include "rewire/onnxruntime_api/runs/run_inputs.h"

#include <utility>

#include "rewire/onnxruntime_api/status.h"
#include "rewire/onnxruntime_api/values/string_parts.h"
#include "rewire/onnxruntime_api/values/tensor_types.h"

namespace rewire::onnxruntime_api {
namespace {

constexpr char kFix[] = " Please fix either the inputs/outputs or the model.";

OrtStatus* CheckTensor(const std::string& name, const OrtTensorTypeAndShapeInfo& expected,
                       const ValueBody& body) {
  if (body.type != expected.type) {
    return InvalidArgument("Unexpected input data type. Actual: (" + TensorTypeText(body.type) +
                           ") , expected: (" + TensorTypeText(expected.type) + ")");
  }
  // Programs give scalars as tensors of one element.
  if (!expected.has_shape || (expected.dims.empty() && body.elements() == 1)) return nullptr;
  if (body.shape.size() != expected.dims.size()) {
    return InvalidArgument("Invalid rank for input: " + name + " Got: " + std::to_string(body.shape.size()) +
                           " Expected: " + std::to_string(expected.dims.size()) + kFix);
  }
  std::string wrong;
  for (std::size_t i = 0; i < expected.dims.size(); ++i) {
    if (expected.dims[i] < 0 || expected.dims[i] == body.shape[i]) continue;
    wrong += "\n index: " + std::to_string(i) + " Got: " + std::to_string(body.shape[i]) +
             " Expected: " + std::to_string(expected.dims[i]);
  }
  if (wrong.empty()) return nullptr;
  return InvalidArgument("Got invalid dimensions for input: " + name + " for the following indices" + wrong +
                         "\n" + kFix);
}

// The number of a kind of types in ONNX Runtime's message of a value of another kind. Sequences are those of
// tensors.
int KindOf(const OrtTypeInfo& type) {
  enum { kNoTensor = 1, kTensor = 2, kSequence = 3, kOptional = 5 };
  if (type.kind == ONNX_TYPE_TENSOR) return kTensor;
  const bool is_of_maps = type.sequence.element != nullptr && type.sequence.element->kind == ONNX_TYPE_MAP;
  if (type.kind == ONNX_TYPE_SEQUENCE && !is_of_maps) return kSequence;
  return type.kind == ONNX_TYPE_OPTIONAL ? kOptional : kNoTensor;
}

OrtStatus* WrongKind(const char* what, const std::string& name, const OrtTypeInfo& type,
                     const ValueBody& body) {
  const char* const given = body.kind == ONNX_TYPE_TENSOR     ? "tensor"
                            : body.kind == ONNX_TYPE_SEQUENCE ? "tensor sequence"
                                                              : "map";
  return InvalidArgument(std::string(what) + " with name: '" + name + "' expected to be of type: " +
                         std::to_string(KindOf(type)) + " but received a " + given);
}

// A tensor of strings as positions, and the list that they stand for.
Status BindStrings(const Port& port, const ValueBody& body, const std::vector<std::int64_t>& shape,
                   std::vector<Value>* values) {
  Result<std::shared_ptr<ValueBody>> positions = MakeTensor(ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64, shape);
  if (!positions) return Forward(positions);
  const auto count = static_cast<std::int64_t>(body.strings.size());
  Result<std::shared_ptr<ValueBody>> offsets = MakeTensor(ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64, {count + 1});
  if (!offsets) return Forward(offsets);
  Result<std::shared_ptr<ValueBody>> bytes =
      MakeTensor(ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8, {BytesOf(body.strings)});
  if (!bytes) return Forward(bytes);
  WriteStrings(body.strings, static_cast<std::int64_t*>((*positions)->data),
               static_cast<std::int64_t*>((*offsets)->data), (*bytes)->data);
  const std::pair<std::uint32_t, std::shared_ptr<ValueBody>> parts[] = {
      {port.place, *positions}, {port.parts->offsets, *offsets}, {port.parts->bytes, *bytes}};
  for (const auto& [place, part] : parts) {
    Result<Value> value = ToTensor(part);
    if (!value) return Forward(value);
    (*values)[place] = *std::move(value);
  }
  return {};
}

Result<Value> ToSequence(const ValueBody& body) {
  std::vector<Value> fields;
  for (const auto& part : body.parts) {
    Result<Value> field = ToTensor(part);
    if (!field) return Forward(field);
    fields.push_back(*std::move(field));
  }
  return Value::Adt(0, Span<const Value>(fields));
}

// Checks a value against a type of an input.
OrtStatus* CheckInput(const std::string& name, const OrtTypeInfo& type, const ValueBody& body) {
  const bool is_optional = type.kind == ONNX_TYPE_OPTIONAL;
  if (is_optional && !body.has_value) return nullptr;
  const OrtTypeInfo& inner =
      is_optional && type.optional.contained != nullptr ? *type.optional.contained : type;
  if (body.kind != inner.kind) return WrongKind("input", name, type, body);
  return body.kind == ONNX_TYPE_TENSOR ? CheckTensor(name, inner.tensor, body) : nullptr;
}

// A value that is no plain tensor: a sequence of tensors, or an optional, which is a tuple of one or none.
Result<Value> ToOther(const Port& port, const std::shared_ptr<ValueBody>& body) {
  const bool is_optional = port.type.kind == ONNX_TYPE_OPTIONAL;
  if (body->kind == ONNX_TYPE_MAP || body->is_string())
    return Fail(StatusCode::kInvalidArgument, "input '{}' is given a value of another type", port.name);
  if (is_optional && !body->has_value) return Value::Adt(0, {});
  for (const auto& part : body->parts) {
    if (part->kind != ONNX_TYPE_TENSOR || part->is_string())
      return Fail(StatusCode::kUnsupported, "input '{}' is a sequence of other values than numbers",
                  port.name);
  }
  Result<Value> value = body->kind == ONNX_TYPE_SEQUENCE ? ToSequence(*body) : ToTensor(body);
  if (!is_optional || !value) return value;
  return Value::Adt(0, Span<const Value>({*value}));
}

OrtStatus* Bind(const Port& port, const std::shared_ptr<ValueBody>& body, std::vector<Value>* values) {
  if (OrtStatus* const wrong = CheckInput(port.name, port.type, *body); wrong != nullptr) return wrong;
  if (port.type.kind != ONNX_TYPE_TENSOR) {
    Result<Value> value = ToOther(port, body);
    if (!value) return FromError(value.error());
    (*values)[port.place] = *std::move(value);
    return nullptr;
  }
  // CheckTensor lets one element of any rank stand for a scalar.
  static const std::vector<std::int64_t>* const scalar = new std::vector<std::int64_t>;
  const OrtTensorTypeAndShapeInfo& expected = port.type.tensor;
  const auto& shape = expected.has_shape && expected.dims.empty() ? *scalar : body->shape;
  if (port.parts) {
    const Status bound = BindStrings(port, *body, shape, values);
    return bound ? nullptr : FromError(bound.error());
  }
  Result<Value> value = ToTensor(body, shape);
  if (!value) return FromError(value.error());
  (*values)[port.place] = *std::move(value);
  return nullptr;
}

}  // namespace

OrtStatus* BindInputs(const Ports& ports, const std::vector<NamedInput>& inputs, std::vector<Value>* values) {
  values->assign(ports.input_places, Value());
  for (const NamedInput& input : inputs) {
    if (input.name == nullptr || *input.name == '\0') return InvalidArgument("input name cannot be empty");
    const auto found = ports.input_by_name.find(input.name);
    if (found == ports.input_by_name.end())
      return InvalidArgument("Invalid input name: " + std::string(input.name));
    if (input.value == nullptr)
      return InvalidArgument("NULL input supplied for input " + std::string(input.name));
    OrtStatus* const wrong = Bind(ports.inputs[found->second], input.value->body, values);
    if (wrong != nullptr) return wrong;
  }
  for (const Port& port : ports.inputs) {
    Value& value = (*values)[port.place];
    if (port.type.kind != ONNX_TYPE_OPTIONAL || value.kind() != ValueKind::kNone) continue;
    Result<Value> none = Value::Adt(0, {});
    if (!none) return FromError(none.error());
    value = *std::move(none);
  }
  return nullptr;
}

OrtStatus* CheckAllGiven(const Ports& ports, const std::vector<Value>& values) {
  for (const Port& port : ports.inputs) {
    if (values[port.place].kind() == ValueKind::kNone)
      return MakeStatus(ORT_FAIL, "Missing Input: " + port.name);
  }
  return nullptr;
}

OrtStatus* CheckOutput(const Port& port, const ValueBody& body) {
  if (body.kind != port.type.kind && port.type.kind != ONNX_TYPE_OPTIONAL)
    return WrongKind("output", port.name, port.type, body);
  if (port.type.kind != ONNX_TYPE_TENSOR || body.type == port.type.tensor.type) return nullptr;
  return InvalidArgument("Unexpected output data type. Actual: (" + TensorTypeText(body.type) +
                         ") , expected: (" + TensorTypeText(port.type.tensor.type) + ")");
}

}  // namespace rewire::onnxruntime_api
