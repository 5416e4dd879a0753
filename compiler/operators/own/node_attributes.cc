// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/operators/own/node_attributes.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "rewire/base/utf8.h"
#include "rewire/compiler/import/onnx_proto.h"
#include "rewire/compiler/operators/own/own_schema.h"

namespace rewire::compiler {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kNodeAttribute[] = "onnx.node";

std::string HexOf(Span<const std::byte> bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(2 * bytes.size());
  for (const std::byte byte : bytes) {
    text += kDigits[std::to_integer<unsigned>(byte) >> 4];
    text += kDigits[std::to_integer<unsigned>(byte) & 15];
  }
  return text;
}

// Sizes that are not known before a run are null.
Json TypeJson(const std::string& name, const Type* type, bool strings) {
  Json json = {{"name", name}};
  if (type == nullptr || !type->IsTensor()) return json;
  json["dtype"] = strings ? kStringDType : DTypeName(type->dtype);
  if (!type->ranked) return json;
  json["shape"] = Json::array();
  for (const DimExpr& dim : type->dims)
    json["shape"].push_back(dim.IsConstant() ? Json(*dim.constant()) : Json());
  return json;
}

Json TensorJson(const HostTensor& tensor) {
  return {{"dtype", DTypeName(tensor.dtype)}, {"shape", tensor.shape}, {"data", HexOf(tensor.bytes.view)}};
}

class PassedAttributes {
 public:
  PassedAttributes(const Op& op, Attributes* attributes) : op_(op), attributes_(*attributes) {}

  Status Add(const std::string& name) {
    const onnx::AttributeProto* attribute = op_.Find(name);
    if (attribute == nullptr) return {};  // it refers to one that the call does not give
    switch (attribute->type()) {
      case onnx::AttributeProto::INT:
        return Pass(name, attribute->i());
      case onnx::AttributeProto::FLOAT:
        return Pass(name, static_cast<double>(attribute->f()));
      case onnx::AttributeProto::STRING:
        if (!IsUtf8(attribute->s())) return op_.Unsupported("attribute '{}' is no UTF-8", name);
        return Pass(name, attribute->s());
      case onnx::AttributeProto::INTS:
        return Pass(name, Ints(attribute->ints().begin(), attribute->ints().end()));
      case onnx::AttributeProto::FLOATS:
        return Pass(name, std::vector<double>(attribute->floats().begin(), attribute->floats().end()));
      case onnx::AttributeProto::STRINGS:
        for (const std::string& text : attribute->strings()) {
          if (!IsUtf8(text)) return op_.Unsupported("attribute '{}' is no UTF-8", name);
        }
        others_[name] = std::vector<std::string>(attribute->strings().begin(), attribute->strings().end());
        return {};
      case onnx::AttributeProto::TENSOR: {
        const Result<HostTensor> tensor = op_.TensorAttribute(name);
        if (!tensor) return Forward(tensor);
        others_[name] = TensorJson(*tensor);
        return {};
      }
      default:
        return op_.Unsupported("attribute '{}' is of type {}, which a kernel cannot be given", name,
                               onnx::AttributeProto::AttributeType_Name(attribute->type()));
    }
  }
  Json Take() { return std::move(others_); }

 private:
  template <typename T>
  Status Pass(const std::string& name, T value) {
    const bool listed = std::any_of(attributes_.begin(), attributes_.end(),
                                    [&](const Attribute& each) { return each.name == name; });
    if (!listed) attributes_.push_back({name, std::move(value)});
    return {};
  }

  const Op& op_;
  Attributes& attributes_;
  Json others_ = Json::object();
};

}  // namespace

Status AddNodeAttributes(Op& op, const OperatorSchema& schema, const std::vector<NodeOutput>& outputs,
                         Attributes* attributes) {
  PassedAttributes all(op, attributes);
  for (const onnx::AttributeProto& attribute : op.node().attribute()) {
    if (Status added = all.Add(attribute.name()); !added) return added;
  }
  Json node = {{"name", op.node().name()}, {"domain", schema.domain}, {"operator", schema.name},
               {"version", op.opset()},    {"inputs", Json::array()}, {"outputs", Json::array()},
               {"attributes", all.Take()}};
  for (int i = 0; i < op.inputs(); ++i) {
    const Value* input = op.in(i);
    node["inputs"].push_back(TypeJson(op.node().input(i), input == nullptr ? nullptr : &input->type,
                                      input != nullptr && op.lowering().strings().Has(input)));
  }
  for (int i = 0; i < op.outputs(); ++i) {
    const NodeOutput& output = outputs[static_cast<std::size_t>(i)];
    node["outputs"].push_back(TypeJson(op.node().output(i), &output.type, output.strings));
  }
  attributes->push_back({kNodeAttribute, node.dump(-1, ' ', false, Json::error_handler_t::replace)});
  return {};
}

}  // namespace rewire::compiler
