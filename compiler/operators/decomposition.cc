// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/operators/decomposition.h"

#include <fmt/format.h>

#include "rewire/compiler/import/onnx_proto.h"
#include "rewire/compiler/lower/registry.h"

namespace rewire::compiler {

std::string Decomposition::In(int i) {
  Value* value = op_.in(i);
  return value == nullptr ? "" : Name(value);
}

std::string Decomposition::Name(Value* value) {
  // Nodes cannot mention such a name: it is in no scope of the model.
  std::string name = fmt::format("\n{}", count_++);
  scope_.names[name] = value;
  return name;
}

std::string Decomposition::Output(const std::string& name, int i) {
  return i == 0 ? name : fmt::format("{}:{}", name, i);
}

std::string Decomposition::Add(const std::string& type, const std::vector<std::string>& inputs,
                               const Form& form) {
  onnx::NodeProto node;
  node.set_op_type(type);
  for (const std::string& input : inputs) node.add_input(input);
  while (node.input_size() > 0 && node.input(node.input_size() - 1).empty()) {
    node.mutable_input()->RemoveLast();
  }
  std::string name = fmt::format("{}.{}", op_.NextName(), count_++);
  for (int i = 0; i < form.outputs; ++i) node.add_output(Output(name, i));
  for (const onnx::AttributeProto& attribute : form.attributes) *node.add_attribute() = attribute;
  for (const std::string& copied : form.copied) {
    const onnx::AttributeProto* attribute = op_.Find(copied);
    if (attribute == nullptr) continue;
    onnx::AttributeProto* copy = node.add_attribute();
    *copy = *attribute;
    copy->set_name(copied);
  }
  if (!status_) return name;
  Op part(node, form.opset, &scope_, &op_.lowering());
  status_ = LowerOperator(&part);
  return name;
}

std::string Decomposition::Add(const std::string& type, const std::vector<std::string>& inputs) {
  return Add(type, inputs, Form());
}

onnx::AttributeProto IntAttribute(const std::string& name, std::int64_t value) {
  onnx::AttributeProto attribute;
  attribute.set_name(name);
  attribute.set_type(onnx::AttributeProto::INT);
  attribute.set_i(value);
  return attribute;
}

onnx::AttributeProto IntsAttribute(const std::string& name, const std::vector<std::int64_t>& values) {
  onnx::AttributeProto attribute;
  attribute.set_name(name);
  attribute.set_type(onnx::AttributeProto::INTS);
  for (const std::int64_t value : values) attribute.add_ints(value);
  return attribute;
}

}  // namespace rewire::compiler
