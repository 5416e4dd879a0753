// SPDX-License-Identifier: Apache-2.0
// Models that cannot be compiled: one clear message each.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "rewire/tests/compiler/model_builder.h"

namespace rewire::test {
namespace {

TEST_CASE("a truncated model") {
  onnx::ModelProto model = EmptyModel();
  SetValue(model.mutable_graph()->add_input(), "x", {2});
  AddNode(model.mutable_graph(), "Relu", {"x"}, "y");
  SetValue(model.mutable_graph()->add_output(), "y", {2});
  const std::string bytes = model.SerializeAsString();
  CHECK(CompileBytes(bytes).message.empty());
  CHECK(CompileBytes(bytes.substr(0, bytes.size() - 9)).message ==
        "model: not an ONNX model, or a truncated one; copy it again, or export one as docs/from-pytorch.md "
        "says");
  CHECK(CompileBytes("").message == "model: it has no graph");
}

TEST_CASE("graphs that do not hold together") {
  onnx::ModelProto model = EmptyModel();
  onnx::GraphProto* graph = model.mutable_graph();
  SetValue(graph->add_output(), "y", {2});
  SECTION("a cycle") {
    AddNode(graph, "Relu", {"y"}, "z");
    AddNode(graph, "Relu", {"z"}, "y");
    CHECK(CompileProto(model).message ==
          "model: the graph is cyclic: Relu 'z' reads what depends on its own output");
  }
  SECTION("a name that nothing defines") {
    AddNode(graph, "Relu", {"x"}, "y");
    CHECK(CompileProto(model).message == "model: Relu 'y' reads 'x', which nothing defines");
  }
  SECTION("an output that nothing computes") {
    CHECK(CompileProto(model).message == "model: output 'y' is not computed");
  }
}

TEST_CASE("names that no program can have") {
  onnx::ModelProto model = EmptyModel();
  onnx::GraphProto* graph = model.mutable_graph();
  SetValue(graph->add_input(), "x", {2});
  AddNode(graph, "Relu", {"x"}, "y")->set_name("two\nlines \xFF");
  SetValue(graph->add_output(), "y", {2});
  SECTION("of a node or a dimension: they are made printable") {
    graph->mutable_input(0)
        ->mutable_type()
        ->mutable_tensor_type()
        ->mutable_shape()
        ->mutable_dim(0)
        ->set_dim_param("\x01");
    CHECK(CompileProto(model).message.empty());
  }
  SECTION("two outputs") {
    SetValue(graph->add_output(), "y", {2});
    CHECK(CompileProto(model).message == "model: there are two outputs 'y'");
  }
  SECTION("an input without one") {
    SetValue(graph->add_input(), "", {2});
    CHECK(CompileProto(model).message == "model: input 1 has no name");
  }
  SECTION("an output that cannot be printed") {
    AddNode(graph, "Relu", {"x"}, "\x01");
    SetValue(graph->add_output(), "\x01", {2});
    CHECK(CompileProto(model).message ==
          "model: the name of output 1 is not printable UTF-8 of at most 1024 bytes");
  }
}

TEST_CASE("more dimensions than a tensor has") {
  onnx::ModelProto model = EmptyModel();
  onnx::GraphProto* graph = model.mutable_graph();
  SECTION("of an input") {
    SetValue(graph->add_input(), "x", std::vector<Dim>(33, 1));
    AddNode(graph, "Relu", {"x"}, "y");
    SetValue(graph->add_output(), "y", {});
    CHECK(CompileProto(model).message == "model: input 'x' has 33 dimensions, the limit is 32");
  }
  SECTION("of a result") {
    SetValue(graph->add_input(), "x", {1});
    SetValue(graph->add_input(), "shape", {std::int64_t{1} << 35}, onnx::TensorProto::INT64);
    AddNode(graph, "Expand", {"x", "shape"}, "y");
    SetValue(graph->add_output(), "y", {});
    const Outcome outcome = CompileProto(model);
    REQUIRE(outcome.unsupported.size() == 1);
    CHECK(outcome.unsupported[0].reason ==
          "the target shape has 34359738368 elements, a tensor has at most 32 dimensions");
  }
  SECTION("of a tensor that has its shape from constants") {
    SetValue(graph->add_input(), "x", {1});
    AddInts(graph, "shape", std::vector<std::int64_t>(40, 1));
    AddNode(graph, "Reshape", {"x", "shape"}, "y");
    SetValue(graph->add_output(), "y", {});
    const Outcome outcome = CompileProto(model);
    REQUIRE(outcome.unsupported.size() == 1);
    CHECK(outcome.unsupported[0].reason == "its output has 40 dimensions, the limit is 32");
  }
}

TEST_CASE("a window that is larger than what it moves over") {
  onnx::ModelProto model = EmptyModel();
  onnx::GraphProto* graph = model.mutable_graph();
  SetValue(graph->add_input(), "x", {1, 1, 6});
  onnx::NodeProto* pool = AddNode(graph, "MaxPool", {"x"}, "y");
  onnx::AttributeProto* size = pool->add_attribute();
  size->set_name("kernel_shape");
  size->set_type(onnx::AttributeProto::INTS);
  size->add_ints(9);
  SetValue(graph->add_output(), "y", {});
  const Outcome outcome = CompileProto(model);
  REQUIRE(outcome.unsupported.size() == 1);
  CHECK(outcome.unsupported[0].reason == "its output comes out with shape [1, 1, -2]");
}

TEST_CASE("tensors whose known sizes do not fit are refused") {
  onnx::ModelProto model = EmptyModel();
  onnx::GraphProto* graph = model.mutable_graph();
  SetValue(graph->add_input(), "a", {2, 3});
  SetValue(graph->add_input(), "b", {4, 5});
  AddInt(AddNode(graph, "Concat", {"a", "b"}, "y"), "axis", 0);
  SetValue(graph->add_output(), "y", {});
  const Outcome outcome = CompileProto(model);
  REQUIRE(outcome.unsupported.size() == 1);
  CHECK(outcome.unsupported[0].reason == "input 1 has shape [4, 5], expected [2, 3] but for axis 0");
}

TEST_CASE("a list of sizes that is no list is refused") {
  onnx::ModelProto model = EmptyModel();
  onnx::GraphProto* graph = model.mutable_graph();
  SetValue(graph->add_input(), "sizes", {1, 1}, onnx::TensorProto::INT64);
  AddNode(graph, "ConstantOfShape", {"sizes"}, "y");
  SetValue(graph->add_output(), "y", {});
  const Outcome outcome = CompileProto(model);
  REQUIRE(outcome.unsupported.size() == 1);
  CHECK(outcome.unsupported[0].reason == "input has rank 2, expected a list of sizes");
}

TEST_CASE("dimensions that no memory holds") {
  onnx::ModelProto model = EmptyModel();
  onnx::GraphProto* graph = model.mutable_graph();
  SetValue(graph->add_input(), "x", {std::int64_t{1} << 40, std::int64_t{1} << 40});
  AddNode(graph, "Relu", {"x"}, "y");
  SetValue(graph->add_output(), "y", {});
  CHECK_THAT(CompileProto(model).message, Catch::EndsWith("is too large"));
}

TEST_CASE("external data stays in the model's folder") {
  onnx::ModelProto model = EmptyModel();
  onnx::GraphProto* graph = model.mutable_graph();
  onnx::TensorProto* weights = graph->add_initializer();
  weights->set_name("w");
  weights->set_data_type(onnx::TensorProto::FLOAT);
  weights->add_dims(1);
  weights->set_data_location(onnx::TensorProto::EXTERNAL);
  onnx::StringStringEntryProto* entry = weights->add_external_data();
  entry->set_key("location");
  AddNode(graph, "Relu", {"w"}, "y");
  SetValue(graph->add_output(), "y", {1});
  entry->set_value("../passwords");
  CHECK(CompileBytes(model.SerializeAsString(), ".").message ==
        "model: tensor 'w': external data '../passwords' is not inside the model's folder");
  entry->set_value("/etc/hostname");
  CHECK(CompileBytes(model.SerializeAsString(), ".").message ==
        "model: tensor 'w': external data '/etc/hostname' is not inside the model's folder");
}

TEST_CASE("everything that is not supported is listed") {
  onnx::ModelProto model = EmptyModel();
  onnx::GraphProto* graph = model.mutable_graph();
  SetValue(graph->add_input(), "x", {2, 3});
  AddNode(graph, "Frobnicate", {"x"}, "a");
  AddNode(graph, "Relu", {"a"}, "b");
  AddNode(graph, "MatMul", {"x", "x"}, "c");
  AddNode(graph, "Add", {"b", "c"}, "y");
  SetValue(graph->add_output(), "y", {2});
  const Outcome outcome = CompileProto(model);
  CHECK(outcome.message == "model: 2 of 4 nodes are not supported");
  REQUIRE(outcome.unsupported.size() == 2);
  CHECK(outcome.unsupported[0].node == "a");
  CHECK(outcome.unsupported[0].op_type == "Frobnicate");
  CHECK(outcome.unsupported[0].opset == 13);
  CHECK(outcome.unsupported[0].reason ==
        "the operator is not known; docs/operators.md lists those that are, docs/own-operators.md says how "
        "to add one");
  CHECK(outcome.unsupported[1].reason ==
        "a has shape [2, 3] and b [2, 3]: the inner dimensions 3 and 2 differ");
}

}  // namespace
}  // namespace rewire::test
