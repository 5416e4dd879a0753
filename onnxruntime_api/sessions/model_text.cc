// SPDX-License-Identifier: Apache-2.0
#include "rewire/onnxruntime_api/sessions/model_text.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "rewire/onnxruntime_api/sessions/model_fields.h"

namespace rewire::onnxruntime_api {
namespace {

// Models before this version of ONNX list every initializer as an input, and mean constants.
constexpr std::uint64_t kOverridableSince = 4;
constexpr int kDeepestType = 16;  // types nest as sequences of optionals do

void ReadShape(std::string_view bytes, OrtTensorTypeAndShapeInfo* info, ModelText* text) {
  for (Fields shape(bytes); shape.Next();) {
    if (shape.field() != 1) continue;
    std::int64_t size = -1;
    std::string name;
    std::string denotation;
    for (Fields dim(shape.text()); dim.Next();) {
      if (dim.field() == 1) size = static_cast<std::int64_t>(dim.number());
      if (dim.field() == 2) name = dim.string();
      if (dim.field() == 3) denotation = dim.string();
    }
    if (!name.empty()) {
      text->dims.insert(name);
      if (!denotation.empty()) text->denotations[denotation].insert(name);
    }
    info->dims.push_back(size < 0 ? -1 : size);
    info->names.push_back(std::move(name));
  }
}

OrtTypeInfo ReadType(std::string_view bytes, int depth, ModelText* text) {
  OrtTypeInfo type;
  type.kind = ONNX_TYPE_UNKNOWN;
  if (depth > kDeepestType) return type;
  const auto inner = [&](std::string_view part) {
    return std::make_shared<const OrtTypeInfo>(ReadType(part, depth + 1, text));
  };
  for (Fields fields(bytes); fields.Next();) {
    Fields part(fields.text());
    switch (fields.field()) {
      case 1:
        type.kind = ONNX_TYPE_TENSOR;
        type.tensor.has_shape = false;
        while (part.Next()) {
          if (part.field() == 1)
            type.tensor.type =
                static_cast<ONNXTensorElementDataType>(std::min<std::uint64_t>(part.number(), 64));
          if (part.field() == 2) {
            type.tensor.has_shape = true;
            ReadShape(part.text(), &type.tensor, text);
          }
        }
        break;
      case 4:
        type.kind = ONNX_TYPE_SEQUENCE;
        while (part.Next()) type.sequence.element = inner(part.text());
        break;
      case 5:
        type.kind = ONNX_TYPE_MAP;
        while (part.Next()) {
          if (part.field() == 1)
            type.map.key = static_cast<ONNXTensorElementDataType>(std::min<std::uint64_t>(part.number(), 64));
          if (part.field() == 2) type.map.value = inner(part.text());
        }
        break;
      case 6:
        type.denotation = fields.string();
        break;
      case 8:
        type.kind = ONNX_TYPE_SPARSETENSOR;
        break;
      case 9:
        type.kind = ONNX_TYPE_OPTIONAL;
        while (part.Next()) type.optional.contained = inner(part.text());
        break;
      default:
        break;
    }
  }
  return type;
}

DeclaredValue ReadValue(std::string_view bytes, ModelText* text) {
  DeclaredValue value;
  for (Fields fields(bytes); fields.Next();) {
    if (fields.field() == 1) value.name = fields.string();
    if (fields.field() == 2) value.type = ReadType(fields.text(), 0, text);
  }
  return value;
}

void ReadInitializer(std::string_view bytes, ModelText* text) {
  std::string name;
  bool external = false;
  for (Fields tensor(bytes); tensor.Next();) {
    if (tensor.field() == 8) name = tensor.string();
    if (tensor.field() == 14) external = tensor.number() == 1;
  }
  if (external) text->external.insert(name);
  text->initializers.insert(std::move(name));
}

void ReadGraph(std::string_view bytes, ModelText* text) {
  for (Fields graph(bytes); graph.Next();) {
    switch (graph.field()) {
      case 5:
        ReadInitializer(graph.text(), text);
        break;
      case 11:
        text->inputs.push_back(ReadValue(graph.text(), text));
        break;
      case 12:
        text->outputs.push_back(ReadValue(graph.text(), text));
        break;
      default:
        break;
    }
  }
}

}  // namespace

ModelText ReadModelText(Span<const std::byte> model) {
  ModelText text;
  std::uint64_t ir_version = 0;
  for (Fields fields({reinterpret_cast<const char*>(model.data()), model.size()}); fields.Next();) {
    if (fields.field() == 1) ir_version = fields.number();
    if (fields.field() == 7) ReadGraph(fields.text(), &text);
  }
  const auto is_no_initializer = [&](const DeclaredValue& input) {
    return text.initializers.count(input.name) == 0;
  };
  const auto end = std::stable_partition(text.inputs.begin(), text.inputs.end(), is_no_initializer);
  if (ir_version >= kOverridableSince)
    text.overridable.assign(std::make_move_iterator(end), std::make_move_iterator(text.inputs.end()));
  text.inputs.erase(end, text.inputs.end());
  return text;
}

}  // namespace rewire::onnxruntime_api
