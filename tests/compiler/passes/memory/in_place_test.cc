// SPDX-License-Identifier: Apache-2.0
// Kernels that write over what dies there: where they do, and where something may still read it.
#include <catch2/catch.hpp>
#include <string>

#include "rewire/tests/compiler/model_builder.h"

namespace rewire::test {
namespace {

// The program after the pass; the answer is that of the program without it.
std::string TextOf(const onnx::ModelProto& model, const Shape& shape) {
  std::string text;
  compiler::CompileOptions options;
  options.dump = [&](const std::string& stage, const std::string& program) {
    if (stage == "in-place") text = program;
  };
  options.disabled_passes = {"fuse-elementwise"};
  Outcome with = CompileProto(model, options);
  REQUIRE(with.message.empty());
  compiler::CompileOptions without_pass;
  without_pass.disabled_passes = {"in-place", "fuse-elementwise"};
  Outcome without = CompileProto(model, without_pass);
  REQUIRE(without.message.empty());
  const Answer given = RunOnCounts(std::move(with.compiled.module), shape);
  const Answer expected = RunOnCounts(std::move(without.compiled.module), shape);
  CHECK(given.error.empty());
  CHECK(given.shape == expected.shape);
  CHECK(given.values == expected.values);
  return text;
}

std::size_t Count(const std::string& text, const std::string& what) {
  std::size_t count = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
  return count;
}

onnx::ModelProto InPlaceModel(const std::vector<Dim>& dims) {
  onnx::ModelProto model = EmptyModel();
  SetValue(model.mutable_graph()->add_input(), "x", dims);
  SetValue(model.mutable_graph()->add_output(), "y", {});
  return model;
}

TEST_CASE("a chain of elementwise kernels has one tensor") {
  onnx::ModelProto model = InPlaceModel({"N", 3});
  onnx::GraphProto* graph = model.mutable_graph();
  AddFloats(graph, "row", {3}, {1, 2, 3});
  AddNode(graph, "Neg", {"x"}, "a");         // x is the caller's
  AddNode(graph, "Add", {"row", "a"}, "b");  // over a, not over what is broadcast
  AddNode(graph, "Softmax", {"b"}, "c");
  AddNode(graph, "Mul", {"c", "c"}, "d");
  AddNode(graph, "Tanh", {"d"}, "y");
  const std::string text = TextOf(model, {4, 3});
  CHECK(Count(text, "over input 1") == 1);
  CHECK(Count(text, "over input 0") == 3);
}

TEST_CASE("what is read again is not written over") {
  onnx::ModelProto model = InPlaceModel({2, 3});
  onnx::GraphProto* graph = model.mutable_graph();
  SECTION("by a later node") {
    AddNode(graph, "Neg", {"x"}, "a");
    AddNode(graph, "Exp", {"a"}, "b");
    AddNode(graph, "MatMul", {"b", "w"}, "c");
    AddNode(graph, "MatMul", {"a", "w"}, "d");
    AddNode(graph, "Concat", {"c", "d"}, "y")->add_attribute()->set_name("axis");
    graph->mutable_node(4)->mutable_attribute(0)->set_type(onnx::AttributeProto::INT);
    AddFloats(graph, "w", {3, 1}, {1, 2, 3});
    CHECK(Count(TextOf(model, {2, 3}), "over input") == 0);
  }
  SECTION("as a result of its block") {
    AddFloats(graph, "limit", {}, {3});
    AddNode(graph, "ReduceMax", {"x"}, "most");
    AddInt(graph->mutable_node(0), "keepdims", 0);
    AddNode(graph, "Greater", {"most", "limit"}, "condition");
    onnx::NodeProto* branch = AddNode(graph, "If", {"condition"}, "p");
    branch->add_output("q");
    for (const std::string name : {"then_branch", "else_branch"}) {
      onnx::GraphProto* body = AddGraph(branch, name);
      AddNode(body, "Tanh", {"x"}, name + ".a");
      AddNode(body, name == "then_branch" ? "Exp" : "Neg", {name + ".a"}, name + ".b");  // the last node
      SetValue(body->add_output(), name + ".a", {});
      SetValue(body->add_output(), name + ".b", {});
    }
    AddNode(graph, "Sub", {"p", "q"}, "y");
    CHECK(Count(TextOf(model, {2, 3}), "rewire.exp(") == 1);
  }
  SECTION("through a view") {
    AddInts(graph, "flat", {6});
    AddNode(graph, "Neg", {"x"}, "a");
    AddNode(graph, "Reshape", {"a", "flat"}, "view");
    AddNode(graph, "Exp", {"a"}, "b");
    AddNode(graph, "Reshape", {"b", "flat"}, "other");
    AddNode(graph, "MatMul", {"view", "other"}, "y");
    CHECK(Count(TextOf(model, {2, 3}), "over input") == 0);
  }
  SECTION("as an output") {
    AddNode(graph, "Neg", {"x"}, "y");
    AddNode(graph, "Exp", {"y"}, "z");
    SetValue(graph->add_output(), "z", {});
    std::string text;
    compiler::CompileOptions options;
    options.dump = [&](const std::string& stage, const std::string& program) {
      if (stage == "in-place") text = program;
    };
    REQUIRE(CompileProto(model, options).message.empty());
    CHECK(Count(text, "over input") == 0);
  }
}

TEST_CASE("a smaller input is not written over") {
  onnx::ModelProto model = InPlaceModel({1, 3});
  onnx::GraphProto* graph = model.mutable_graph();
  AddFloats(graph, "column", {2, 1}, {1, 2});
  AddNode(graph, "Neg", {"x"}, "a");
  AddNode(graph, "Add", {"a", "column"}, "y");
  CHECK(Count(TextOf(model, {1, 3}), "over input") == 0);
}

TEST_CASE("a kernel writes over the input that its row names, unless it reads that one elsewhere too") {
  onnx::ModelProto model = InPlaceModel({3});
  onnx::GraphProto* graph = model.mutable_graph();
  model.mutable_opset_import(0)->set_version(17);
  AddNode(graph, "Neg", {"x"}, "a");
  SECTION("scattered updates") {
    AddInts(graph, "at", {1});
    AddInts(graph, "flat", {1, 1});
    AddNode(graph, "Reshape", {"at", "flat"}, "places");
    AddFloats(graph, "updates", {1}, {7});
    AddNode(graph, "ScatterND", {"a", "places", "updates"}, "y");
    CHECK(Count(TextOf(model, {3}), "over input 0") == 1);
  }
  SECTION("a normalization by other scales") {
    AddFloats(graph, "scale", {3}, {1, 2, 3});
    AddNode(graph, "LayerNormalization", {"a", "scale"}, "y");
    CHECK(Count(TextOf(model, {3}), "over input 0") == 1);
  }
  SECTION("a normalization by itself") {
    AddNode(graph, "LayerNormalization", {"a", "a"}, "y");
    CHECK(Count(TextOf(model, {3}), "over input") == 0);
  }
}

TEST_CASE("what a loop carries is not written over") {
  onnx::ModelProto model = InPlaceModel({3});
  onnx::GraphProto* graph = model.mutable_graph();
  AddInts(graph, "turns", {4}, true);
  AddNode(graph, "Neg", {"x"}, "start");
  onnx::NodeProto* loop = AddNode(graph, "Loop", {"turns", "", "start"}, "y");
  onnx::GraphProto* body = AddGraph(loop, "body");
  SetValue(body->add_input(), "i", {}, onnx::TensorProto::INT64);
  SetValue(body->add_input(), "go", {}, onnx::TensorProto::BOOL);
  SetValue(body->add_input(), "v", {3});
  AddNode(body, "Identity", {"go"}, "go_on");
  AddNode(body, "Exp", {"v"}, "e");     // v may be the value of the turn before
  AddNode(body, "Neg", {"e"}, "next");  // e is this turn's own
  SetValue(body->add_output(), "go_on", {}, onnx::TensorProto::BOOL);
  SetValue(body->add_output(), "next", {3});
  CHECK(Count(TextOf(model, {3}), "over input") == 1);
}

}  // namespace
}  // namespace rewire::test
