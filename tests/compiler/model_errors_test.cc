// SPDX-License-Identifier: Apache-2.0
// Models that cannot be compiled: one clear message each.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "compiler/compile.h"
#include "compiler/import/onnx_proto.h"

namespace rewire::compiler {
namespace {

onnx::ModelProto Model() {
  onnx::ModelProto model;
  model.set_ir_version(8);
  model.add_opset_import()->set_version(13);
  model.mutable_graph();
  return model;
}

void AddValue(onnx::ValueInfoProto* info, const std::string& name, const std::vector<std::int64_t>& dims) {
  info->set_name(name);
  onnx::TypeProto::Tensor* tensor = info->mutable_type()->mutable_tensor_type();
  tensor->set_elem_type(onnx::TensorProto::FLOAT);
  tensor->mutable_shape();
  for (const std::int64_t dim : dims) tensor->mutable_shape()->add_dim()->set_dim_value(dim);
}

void AddNode(onnx::GraphProto* graph, const std::string& type, const std::vector<std::string>& inputs,
             const std::string& output) {
  onnx::NodeProto* node = graph->add_node();
  node->set_op_type(type);
  for (const std::string& input : inputs) node->add_input(input);
  node->add_output(output);
}

struct Outcome {
  std::string message;  // empty: it compiled
  std::vector<Unsupported> unsupported;
};

Outcome Compile(const std::string& bytes, const std::string& folder = "") {
  Outcome outcome;
  const SharedBytes shared{{reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()}, nullptr};
  const auto compiled = CompileOnnx(shared, folder, "model", {}, &outcome.unsupported);
  if (!compiled) outcome.message = compiled.error().message();
  return outcome;
}

TEST_CASE("a truncated model") {
  onnx::ModelProto model = Model();
  AddValue(model.mutable_graph()->add_input(), "x", {2});
  AddNode(model.mutable_graph(), "Relu", {"x"}, "y");
  AddValue(model.mutable_graph()->add_output(), "y", {2});
  const std::string bytes = model.SerializeAsString();
  CHECK(Compile(bytes).message.empty());
  CHECK(Compile(bytes.substr(0, bytes.size() - 9)).message == "model: not an ONNX model, or a truncated one");
  CHECK(Compile("").message == "model: it has no graph");
}

TEST_CASE("graphs that do not hold together") {
  onnx::ModelProto model = Model();
  onnx::GraphProto* graph = model.mutable_graph();
  AddValue(graph->add_output(), "y", {2});
  SECTION("a cycle") {
    AddNode(graph, "Relu", {"y"}, "z");
    AddNode(graph, "Relu", {"z"}, "y");
    CHECK(Compile(model.SerializeAsString()).message ==
          "model: the graph is cyclic: Relu 'z' reads what depends on its own output");
  }
  SECTION("a name that nothing defines") {
    AddNode(graph, "Relu", {"x"}, "y");
    CHECK(Compile(model.SerializeAsString()).message == "model: Relu 'y' reads 'x', which nothing defines");
  }
  SECTION("an output that nothing computes") {
    CHECK(Compile(model.SerializeAsString()).message == "model: output 'y' is not computed");
  }
}

TEST_CASE("dimensions that no memory holds") {
  onnx::ModelProto model = Model();
  onnx::GraphProto* graph = model.mutable_graph();
  AddValue(graph->add_input(), "x", {std::int64_t{1} << 40, std::int64_t{1} << 40});
  AddNode(graph, "Relu", {"x"}, "y");
  AddValue(graph->add_output(), "y", {});
  CHECK_THAT(Compile(model.SerializeAsString()).message, Catch::EndsWith("is too large"));
}

TEST_CASE("external data stays in the model's folder") {
  onnx::ModelProto model = Model();
  onnx::GraphProto* graph = model.mutable_graph();
  onnx::TensorProto* weights = graph->add_initializer();
  weights->set_name("w");
  weights->set_data_type(onnx::TensorProto::FLOAT);
  weights->add_dims(1);
  weights->set_data_location(onnx::TensorProto::EXTERNAL);
  onnx::StringStringEntryProto* entry = weights->add_external_data();
  entry->set_key("location");
  AddNode(graph, "Relu", {"w"}, "y");
  AddValue(graph->add_output(), "y", {1});
  entry->set_value("../passwords");
  CHECK(Compile(model.SerializeAsString(), ".").message ==
        "model: tensor 'w': external data '../passwords' is not inside the model's folder");
  entry->set_value("/etc/hostname");
  CHECK(Compile(model.SerializeAsString(), ".").message ==
        "model: tensor 'w': external data '/etc/hostname' is not inside the model's folder");
}

TEST_CASE("everything that is not supported is listed") {
  onnx::ModelProto model = Model();
  onnx::GraphProto* graph = model.mutable_graph();
  AddValue(graph->add_input(), "x", {2, 3});
  AddNode(graph, "Frobnicate", {"x"}, "a");
  AddNode(graph, "Relu", {"a"}, "b");
  AddNode(graph, "MatMul", {"x", "x"}, "c");
  AddNode(graph, "Add", {"b", "c"}, "y");
  AddValue(graph->add_output(), "y", {2});
  const Outcome outcome = Compile(model.SerializeAsString());
  CHECK(outcome.message == "model: 2 of 4 nodes are not supported");
  REQUIRE(outcome.unsupported.size() == 2);
  CHECK(outcome.unsupported[0].node == "a");
  CHECK(outcome.unsupported[0].op_type == "Frobnicate");
  CHECK(outcome.unsupported[0].opset == 13);
  CHECK(outcome.unsupported[0].reason == "the operator is not known");
  CHECK(outcome.unsupported[1].reason == "shapes [2, 3] and [2, 3] do not multiply");
}

}  // namespace
}  // namespace rewire::compiler
