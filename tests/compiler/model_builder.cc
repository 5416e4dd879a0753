// SPDX-License-Identifier: Apache-2.0
#include "rewire/tests/compiler/model_builder.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>
#include <utility>

#include "rewire/vm/vm.h"

namespace rewire::test {

onnx::ModelProto EmptyModel(std::int64_t opset) {
  onnx::ModelProto model;
  model.set_ir_version(8);
  model.add_opset_import()->set_version(opset);
  model.mutable_graph();
  return model;
}

void SetValue(onnx::ValueInfoProto* info, const std::string& name, const std::vector<Dim>& dims,
              onnx::TensorProto::DataType type) {
  info->set_name(name);
  onnx::TypeProto::Tensor* tensor = info->mutable_type()->mutable_tensor_type();
  tensor->set_elem_type(type);
  tensor->mutable_shape();
  for (const Dim& dim : dims) {
    onnx::TensorShapeProto::Dimension* added = tensor->mutable_shape()->add_dim();
    if (const std::int64_t* size = std::get_if<std::int64_t>(&dim)) {
      added->set_dim_value(*size);
    } else if (*std::get<const char*>(dim) != '\0') {
      added->set_dim_param(std::get<const char*>(dim));
    }
  }
}

onnx::NodeProto* AddNode(onnx::GraphProto* graph, const std::string& type,
                         const std::vector<std::string>& inputs, const std::string& output) {
  onnx::NodeProto* node = graph->add_node();
  node->set_op_type(type);
  for (const std::string& input : inputs) node->add_input(input);
  node->add_output(output);
  return node;
}

void AddInt(onnx::NodeProto* node, const std::string& name, std::int64_t value) {
  onnx::AttributeProto* attribute = node->add_attribute();
  attribute->set_name(name);
  attribute->set_type(onnx::AttributeProto::INT);
  attribute->set_i(value);
}

void AddIntList(onnx::NodeProto* node, const std::string& name, const std::vector<std::int64_t>& values) {
  onnx::AttributeProto* attribute = node->add_attribute();
  attribute->set_name(name);
  attribute->set_type(onnx::AttributeProto::INTS);
  for (const std::int64_t value : values) attribute->add_ints(value);
}

void AddString(onnx::NodeProto* node, const std::string& name, const std::string& value) {
  onnx::AttributeProto* attribute = node->add_attribute();
  attribute->set_name(name);
  attribute->set_type(onnx::AttributeProto::STRING);
  attribute->set_s(value);
}

onnx::GraphProto* AddGraph(onnx::NodeProto* node, const std::string& name) {
  onnx::AttributeProto* attribute = node->add_attribute();
  attribute->set_name(name);
  attribute->set_type(onnx::AttributeProto::GRAPH);
  return attribute->mutable_g();
}

void AddInts(onnx::GraphProto* graph, const std::string& name, const std::vector<std::int64_t>& values,
             bool scalar) {
  onnx::TensorProto* tensor = graph->add_initializer();
  tensor->set_name(name);
  tensor->set_data_type(onnx::TensorProto::INT64);
  if (!scalar) tensor->add_dims(static_cast<std::int64_t>(values.size()));
  for (const std::int64_t value : values) tensor->add_int64_data(value);
}

onnx::TensorProto* AddWeight(onnx::GraphProto* graph, const std::string& name,
                             onnx::TensorProto::DataType type, const std::vector<std::int64_t>& shape) {
  onnx::TensorProto* tensor = graph->add_initializer();
  tensor->set_name(name);
  tensor->set_data_type(type);
  for (const std::int64_t dim : shape) tensor->add_dims(dim);
  return tensor;
}

void AddFloats(onnx::GraphProto* graph, const std::string& name, const std::vector<std::int64_t>& shape,
               const std::vector<float>& values) {
  onnx::TensorProto* tensor = AddWeight(graph, name, onnx::TensorProto::FLOAT, shape);
  for (const float value : values) tensor->add_float_data(value);
}

onnx::FunctionProto* AddFunction(onnx::ModelProto* model, const std::string& name,
                                 const std::vector<std::string>& inputs,
                                 const std::vector<std::string>& outputs) {
  static constexpr char kDomain[] = "local";
  onnx::FunctionProto* function = model->add_functions();
  function->set_domain(kDomain);
  function->set_name(name);
  for (const std::string& input : inputs) function->add_input(input);
  for (const std::string& output : outputs) function->add_output(output);
  function->add_opset_import()->set_version(13);
  onnx::OperatorSetIdProto* own = function->add_opset_import();
  own->set_domain(kDomain);
  own->set_version(1);
  const auto& imported = model->opset_import();
  if (std::none_of(imported.begin(), imported.end(), [](const auto& set) { return set.domain() == kDomain; }))
    *model->add_opset_import() = *own;
  return function;
}

Outcome CompileBytes(const std::string& bytes, const std::string& folder,
                     const compiler::CompileOptions& options, const compiler::AfterPass& after) {
  Outcome outcome;
  // Constants may refer to the bytes for as long as the module lives.
  auto kept = std::make_shared<const std::string>(bytes);
  const SharedBytes shared{{reinterpret_cast<const std::byte*>(kept->data()), kept->size()}, kept};
  compiler::CompileOptions checked = options;
  if (!checked.check_passes) checked.check_passes = true;
  Result<compiler::Compiled> compiled =
      compiler::CompileOnnx(shared, folder, "model", checked, &outcome.unsupported, after);
  if (compiled) {
    outcome.compiled = *std::move(compiled);
  } else {
    outcome.message = compiled.error().message();
  }
  return outcome;
}

Answer RunOn(Module module, const std::vector<std::pair<std::string, TensorView>>& inputs) {
  Answer answer;
  const Result<Executable> executable = Executable::FromModule(std::move(module));
  REQUIRE(executable);
  const Result<Program> program = Program::Link(*executable);
  REQUIRE(program);
  VirtualMachine vm(*program);
  Status done;
  for (const auto& [name, tensor] : inputs) {
    if (done) done = vm.TrySetInput(name, tensor);
  }
  if (done) done = vm.TryInvoke();
  if (!done) {
    answer.error = done.error().message();
    return answer;
  }
  const Tensor output = vm.result().tensor();
  REQUIRE((output.dtype() == kFloat32));
  answer.shape = Shape(output.shape().begin(), output.shape().end());
  const auto* first = output.data<float>();
  answer.values.assign(first, first + output.view().size());
  return answer;
}

Answer RunOnCounts(Module module, const Shape& shape) {
  std::vector<float> elements(static_cast<std::size_t>(
      std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>())));
  std::iota(elements.begin(), elements.end(), 0.0F);
  return RunOn(std::move(module), shape, std::move(elements));
}

Answer RunOn(Module module, const Shape& shape, std::vector<float> x) {
  return RunOn(std::move(module), {{"x", TensorView(x.data(), DTypeOf<float>(), shape)}});
}

}  // namespace rewire::test
