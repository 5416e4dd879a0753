// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "rewire/onnxruntime_api/custom_ops/kernel_info.h"
#include "rewire/onnxruntime_api/values/tensor_types.h"
#include "rewire/vm/kernel/packed.h"

namespace rewire::onnxruntime_api {
namespace {

using nlohmann::json;
using Body = std::shared_ptr<ValueBody>;

constexpr char kNodeAttribute[] = "onnx.node";

Status Wrong(const std::string& what) {
  return Fail(StatusCode::kInvalidFile, "the node of a custom operator: {}", what);
}

ONNXTensorElementDataType TypeOfName(const json& of) {
  const auto dtype = of.is_object() ? of.find("dtype") : of.end();
  if (!of.is_object() || dtype == of.end() || !dtype->is_string())
    return ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  if (*dtype == "string") return ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING;
  const std::optional<DLDataType> parsed = ParseDType(dtype->get<std::string>());
  return parsed ? ElementTypeOf(*parsed) : ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
}

// Sizes that only a run knows are -1.
void ReadShape(const json& of, OrtTensorTypeAndShapeInfo* info) {
  const auto shape = of.find("shape");
  info->has_shape = shape != of.end() && shape->is_array();
  if (!info->has_shape) return;
  for (const json& dim : *shape) info->dims.push_back(dim.is_number_integer() ? dim.get<std::int64_t>() : -1);
  info->names.resize(info->dims.size());
}

std::string TextOf(const json& of, const char* key) {
  const auto text = of.find(key);
  return text != of.end() && text->is_string() ? text->get<std::string>() : std::string();
}

void ReadEnds(const json& node, const char* key, std::vector<OrtKernelInfo::End>* ends) {
  const auto list = node.find(key);
  if (list == node.end() || !list->is_array()) return;
  for (const json& each : *list) {
    OrtKernelInfo::End& end = ends->emplace_back();
    if (!each.is_object()) continue;
    end.name = TextOf(each, "name");
    end.type.tensor.type = TypeOfName(each);
    ReadShape(each, &end.type.tensor);
  }
}

std::optional<unsigned> DigitOf(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return std::nullopt;
}

Result<Body> ReadTensor(const std::string& name, const json& of) {
  OrtTensorTypeAndShapeInfo info;
  ReadShape(of, &info);
  Result<Body> tensor = MakeTensor(TypeOfName(of), info.dims);
  if (!tensor) return Wrong("attribute '" + name + "': " + tensor.error().message());
  const std::string data = TextOf(of, "data");
  if (data.size() != 2 * (*tensor)->bytes()) return Wrong("attribute '" + name + "' has another size");
  auto* const bytes = static_cast<unsigned char*>((*tensor)->data);
  for (std::size_t i = 0; i < data.size(); i += 2) {
    const std::optional<unsigned> high = DigitOf(data[i]), low = DigitOf(data[i + 1]);
    if (!high || !low) return Wrong("attribute '" + name + "' has no hexadecimal digits");
    bytes[i / 2] = static_cast<unsigned char>(*high << 4 | *low);
  }
  return tensor;
}

Status ReadOthers(const json& node, OrtKernelInfo* info) {
  const auto others = node.find("attributes");
  if (others == node.end() || !others->is_object()) return {};
  for (const auto& [name, value] : others->items()) {
    if (value.is_array()) {
      std::vector<std::string> texts;
      for (const json& text : value) texts.push_back(text.is_string() ? text.get<std::string>() : "");
      info->attributes.emplace(name, std::move(texts));
    } else if (value.is_object()) {
      Result<Body> tensor = ReadTensor(name, value);
      if (!tensor) return Forward(tensor);
      info->attributes.emplace(name, *std::move(tensor));
    }
  }
  return {};
}

Status ReadNode(std::string_view text, OrtKernelInfo* info) {
  const json node = json::parse(text, nullptr, false);
  if (!node.is_object()) return Wrong("it is no JSON");
  info->name = TextOf(node, "name");
  info->domain = TextOf(node, "domain");
  info->type = TextOf(node, "operator");
  const auto version = node.find("version");
  if (version != node.end() && version->is_number_integer()) info->version = version->get<std::int64_t>();
  ReadEnds(node, "inputs", &info->inputs);
  ReadEnds(node, "outputs", &info->outputs);
  return ReadOthers(node, info);
}

// False for a value of another kind than attributes have.
bool ReadValue(const RewireFFIAny& value, OrtKernelInfo::Attribute* out) {
  using kernel::internal::Reader;
  kernel::ShapeView ints;
  if (value.type_index == kRewireFFIInt) {
    *out = value.v_int64;
  } else if (value.type_index == kRewireFFIFloat) {
    *out = value.v_float64;
  } else if (const auto text = kernel::StringOf(value)) {
    *out = std::string(*text);
  } else if (Reader<kernel::ShapeView>::Read(value, &ints)) {
    *out = std::vector<std::int64_t>(ints.begin(), ints.end());
  } else if (const DLTensor* floats = RewireTensorOf(&value); floats != nullptr && floats->ndim == 1) {
    const auto* const data = static_cast<const double*>(floats->data);
    *out = std::vector<double>(data, data + floats->shape[0]);
  } else {
    return false;
  }
  return true;
}

}  // namespace

Result<std::shared_ptr<OrtKernelInfo>> ReadKernelInfo(const RewireFFIAny* args, std::int32_t count) {
  auto info = std::make_shared<OrtKernelInfo>();
  bool has_node = false;
  for (std::int32_t i = 0; i + 1 < count; i += 2) {
    const std::optional<std::string_view> name = kernel::StringOf(args[i]);
    OrtKernelInfo::Attribute value;
    if (!name || !ReadValue(args[i + 1], &value)) return Wrong("an attribute is of an unknown kind");
    if (*name != kNodeAttribute) {
      info->attributes.emplace(std::string(*name), std::move(value));
      continue;
    }
    const auto* const text = std::get_if<std::string>(&value);
    if (text == nullptr) return Wrong("it is no text");
    if (Status read = ReadNode(*text, info.get()); !read) return Forward(read);
    has_node = true;
  }
  if (!has_node) return Wrong("it is missing");
  return info;
}

}  // namespace rewire::onnxruntime_api
