// SPDX-License-Identifier: Apache-2.0
// An If whose branches give values of different rank: what follows it is compiled for each.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "rewire/tests/compiler/model_builder.h"

namespace rewire::test {
namespace {

// A squeeze of a dimension that may not be 1 is exported so: If(x.shape[0] == 1) Squeeze(x) else x.
void AddSqueeze(onnx::GraphProto* graph, const std::string& input, const std::string& output) {
  AddNode(graph, "Shape", {input}, output + ".shape");
  AddNode(graph, "Gather", {output + ".shape", "zero"}, output + ".size");
  AddNode(graph, "Equal", {output + ".size", "one"}, output + ".is_one");
  onnx::NodeProto* branch = AddNode(graph, "If", {output + ".is_one"}, output);
  onnx::GraphProto* then = AddGraph(branch, "then_branch");
  AddNode(then, "Squeeze", {input, "zeroth"}, output + ".squeezed");
  SetValue(then->add_output(), output + ".squeezed", {});
  onnx::GraphProto* otherwise = AddGraph(branch, "else_branch");
  AddNode(otherwise, "Identity", {input}, output + ".kept");
  SetValue(otherwise->add_output(), output + ".kept", {});
}

onnx::ModelProto SqueezeModel() {
  onnx::ModelProto model = EmptyModel();
  onnx::GraphProto* graph = model.mutable_graph();
  SetValue(graph->add_input(), "x", {"N", "M", 2});
  AddInts(graph, "zero", {0}, true);
  AddInts(graph, "one", {1}, true);
  AddInts(graph, "zeroth", {0});
  AddSqueeze(graph, "x", "squeezed");
  SetValue(graph->add_output(), "y", {});
  return model;
}

TEST_CASE("what follows an If whose branches differ in rank") {
  onnx::ModelProto model = SqueezeModel();
  // Sums over the last axis, which is another one in each branch.
  AddNode(model.mutable_graph(), "Relu", {"squeezed"}, "positive");
  AddInt(AddNode(model.mutable_graph(), "Softmax", {"positive"}, "soft"), "axis", 1);
  AddInts(model.mutable_graph(), "first", {1});
  AddInt(AddNode(model.mutable_graph(), "ReduceSum", {"positive", "first"}, "y"), "keepdims", 0);
  const Outcome outcome = CompileProto(model);
  CHECK(outcome.message.empty());
  CHECK(outcome.compiled.model_nodes == 9);
  const Answer squeezed = RunOnCounts(outcome.compiled.module, {1, 3, 2});
  CHECK(squeezed.shape == Shape{3});
  CHECK(squeezed.values == std::vector<float>{1, 5, 9});
  const Answer kept = RunOnCounts(outcome.compiled.module, {2, 2, 2});
  CHECK(kept.shape == Shape{2, 2});
  CHECK(kept.values == std::vector<float>{2, 4, 10, 12});
}

// Without axes, a squeeze takes out what turns out to be 1.
TEST_CASE("what follows a Squeeze of unknown rank") {
  onnx::ModelProto model = EmptyModel();
  onnx::GraphProto* graph = model.mutable_graph();
  SetValue(graph->add_input(), "x", {"N", 1, "M", 2});
  SetValue(graph->add_output(), "y", {});
  AddNode(graph, "Squeeze", {"x"}, "squeezed");
  SECTION("takes each rank") {
    AddInts(graph, "first", {0});
    AddInt(AddNode(graph, "ReduceSum", {"squeezed", "first"}, "y"), "keepdims", 0);
    const Outcome outcome = CompileProto(model);
    REQUIRE(outcome.message.empty());
    const auto expect = [&](const Shape& given, const Shape& shape, const std::vector<float>& values) {
      const Answer answer = RunOnCounts(outcome.compiled.module, given);
      CHECK(answer.shape == shape);
      CHECK(answer.values == values);
    };
    expect({2, 1, 2, 2}, {2, 2}, {4, 6, 8, 10});
    expect({1, 1, 3, 2}, {2}, {6, 9});
    expect({3, 1, 1, 2}, {2}, {6, 9});
    expect({1, 1, 1, 2}, {}, {1});
  }
  SECTION("takes some ranks") {
    AddIntList(AddNode(graph, "Transpose", {"squeezed"}, "y"), "perm", {1, 0});
    const Outcome outcome = CompileProto(model);
    REQUIRE(outcome.message.empty());
    CHECK(RunOnCounts(outcome.compiled.module, {3, 1, 1, 2}).values == std::vector<float>{0, 2, 4, 1, 3, 5});
    CHECK_THAT(RunOnCounts(outcome.compiled.module, {2, 1, 2, 2}).error, Catch::Contains("Transpose"));
  }
  SECTION("takes none") {
    AddIntList(AddNode(graph, "Transpose", {"squeezed"}, "y"), "perm", {4, 3, 2, 1, 0});
    const Outcome outcome = CompileProto(model);
    REQUIRE(outcome.unsupported.size() == 1);
    CHECK_THAT(outcome.unsupported[0].reason, Catch::Contains("is not known; fixing dimensions"));
  }
}

TEST_CASE("elementwise operators take values whose rank only a run knows") {
  onnx::ModelProto model = EmptyModel();
  onnx::GraphProto* graph = model.mutable_graph();
  SetValue(graph->add_input(), "x", {"N", "M", 2});
  SetValue(graph->add_output(), "y", {});
  AddNode(graph, "Squeeze", {"x"}, "squeezed");
  AddFloats(graph, "rows", {3, 2}, {10, 20, 30, 40, 50, 60});
  SECTION("with a constant, which may have the higher rank") {
    AddNode(graph, "Sub", {"rows", "squeezed"}, "y");
    const Outcome outcome = CompileProto(model);
    CHECK(outcome.message.empty());
    const Answer row = RunOnCounts(outcome.compiled.module, {1, 1, 2});
    CHECK(row.shape == Shape{3, 2});
    CHECK(row.values == std::vector<float>{10, 19, 30, 39, 50, 59});
    const Answer block = RunOnCounts(outcome.compiled.module, {2, 1, 2});
    CHECK(block.error != "");  // [3, 2] and [2, 2]
    const Answer batch = RunOnCounts(outcome.compiled.module, {2, 3, 2});
    CHECK(batch.shape == Shape{2, 3, 2});
    CHECK(batch.values == std::vector<float>{10, 19, 28, 37, 46, 55, 4, 13, 22, 31, 40, 49});
  }
  SECTION("quantized by one scale") {
    AddFloats(graph, "scale", {}, {2});
    AddNode(graph, "QuantizeLinear", {"squeezed", "scale"}, "quantized");
    AddNode(graph, "DequantizeLinear", {"quantized", "scale"}, "y");
    const Outcome outcome = CompileProto(model);
    CHECK(outcome.message.empty());
    const Answer rows = RunOnCounts(outcome.compiled.module, {1, 3, 2});
    CHECK(rows.shape == Shape{3, 2});
    CHECK(rows.values == std::vector<float>{0, 0, 2, 4, 4, 4});
  }
  SECTION("with each other, compared, and as one of many") {
    AddNode(graph, "Mul", {"squeezed", "squeezed"}, "square");
    AddNode(graph, "Greater", {"square", "squeezed"}, "grows");
    AddInt(AddNode(graph, "Cast", {"grows"}, "ones"), "to", onnx::TensorProto::FLOAT);
    AddNode(graph, "Sum", {"ones", "square", "rows"}, "y");
    const Outcome outcome = CompileProto(model);
    CHECK(outcome.message.empty());
    const Answer rows = RunOnCounts(outcome.compiled.module, {1, 3, 2});
    CHECK(rows.shape == Shape{3, 2});
    CHECK(rows.values == std::vector<float>{10, 21, 35, 50, 67, 86});
  }
}

TEST_CASE("a rank for which the rest has no meaning fails when the program comes there") {
  onnx::ModelProto model = SqueezeModel();
  AddInts(model.mutable_graph(), "third", {2});
  onnx::NodeProto* sum = AddNode(model.mutable_graph(), "ReduceSum", {"squeezed", "third"}, "y");
  sum->set_name("sum");
  AddInt(sum, "keepdims", 0);
  const Outcome outcome = CompileProto(model);
  CHECK(outcome.message.empty());
  CHECK(RunOnCounts(outcome.compiled.module, {2, 1, 2}).values == std::vector<float>{1, 5});
  CHECK_THAT(
      RunOnCounts(outcome.compiled.module, {1, 2, 2}).error,
      Catch::EndsWith("the program stopped itself: ReduceSum 'sum': axis is 2, expected at least -2 and "
                      "less than 2"));
}

TEST_CASE("no rank for which the rest has a meaning") {
  onnx::ModelProto model = SqueezeModel();
  AddInts(model.mutable_graph(), "eighth", {7});
  AddNode(model.mutable_graph(), "ReduceSum", {"squeezed", "eighth"}, "y");
  const Outcome outcome = CompileProto(model);
  CHECK(outcome.message == "model: 2 of 7 nodes are not supported");
  REQUIRE(outcome.unsupported.size() == 2);
  CHECK(outcome.unsupported[0].reason == "axis is 7, expected at least -2 and less than 2");
  CHECK(outcome.unsupported[1].reason == "axis is 7, expected at least -3 and less than 3");
}

TEST_CASE("several of them, one inside another") {
  onnx::ModelProto model = SqueezeModel();
  onnx::GraphProto* graph = model.mutable_graph();
  AddSqueeze(graph, "squeezed", "twice");
  AddSqueeze(graph, "twice", "thrice");
  AddInts(graph, "flat", {-1});
  AddNode(graph, "Reshape", {"thrice", "flat"}, "flattened");
  AddNode(graph, "Shape", {"thrice"}, "its_shape");
  AddNode(graph, "Size", {"its_shape"}, "rank");
  AddInt(AddNode(graph, "Cast", {"rank"}, "rank_f"), "to", onnx::TensorProto::FLOAT);
  AddNode(graph, "Mul", {"flattened", "rank_f"}, "y");
  const Outcome outcome = CompileProto(model);
  CHECK(outcome.message.empty());
  const auto times = [&](const Shape& shape) {
    return RunOnCounts(outcome.compiled.module, shape).values[1];
  };
  CHECK(times({1, 1, 2}) == 1);
  CHECK(times({1, 3, 2}) == 2);
  CHECK(times({3, 1, 2}) == 3);
}

TEST_CASE("one in a branch or in a function leads out of it") {
  onnx::ModelProto model = SqueezeModel();
  onnx::GraphProto* graph = model.mutable_graph();
  SECTION("in a function") {
    onnx::FunctionProto* function = AddFunction(&model, "SqueezeFirst", {"value"}, {"result"});
    onnx::GraphProto body;
    AddSqueeze(&body, "value", "result");
    for (const char* constant : {"zero", "one", "zeroth"}) {
      onnx::NodeProto* node = function->add_node();
      node->set_op_type("Constant");
      node->add_output(constant);
      onnx::AttributeProto* attribute = node->add_attribute();
      const bool list = std::string(constant) == "zeroth";
      attribute->set_name(list ? "value_ints" : "value_int");
      attribute->set_type(list ? onnx::AttributeProto::INTS : onnx::AttributeProto::INT);
      if (list) {
        attribute->add_ints(0);
      } else {
        attribute->set_i(std::string(constant) == "one" ? 1 : 0);
      }
    }
    for (const onnx::NodeProto& node : body.node()) *function->add_node() = node;
    AddNode(graph, "SqueezeFirst", {"x"}, "from_function")->set_domain("local");
    AddInt(AddNode(graph, "ReduceSum", {"from_function", "zeroth"}, "y"), "keepdims", 0);
    const Outcome outcome = CompileProto(model);
    CHECK(outcome.message.empty());
    CHECK(RunOnCounts(outcome.compiled.module, {1, 2, 2}).shape == Shape{2});
    CHECK(RunOnCounts(outcome.compiled.module, {3, 2, 2}).shape == Shape{2, 2});
  }
  SECTION("in a branch") {
    AddNode(graph, "Gather", {"squeezed.shape", "one"}, "rows");
    AddNode(graph, "Equal", {"rows", "one"}, "one_row");
    onnx::NodeProto* branch = AddNode(graph, "If", {"one_row"}, "either");
    onnx::GraphProto* then = AddGraph(branch, "then_branch");
    AddSqueeze(then, "x", "inner");
    SetValue(then->add_output(), "inner", {});
    onnx::GraphProto* otherwise = AddGraph(branch, "else_branch");
    AddNode(otherwise, "Identity", {"x"}, "whole");
    SetValue(otherwise->add_output(), "whole", {});
    AddInt(AddNode(graph, "ReduceSum", {"either", "zeroth"}, "y"), "keepdims", 0);
    const Outcome outcome = CompileProto(model);
    CHECK(outcome.message.empty());
    CHECK(RunOnCounts(outcome.compiled.module, {1, 1, 2}).shape == Shape{2});
    CHECK(RunOnCounts(outcome.compiled.module, {3, 1, 2}).shape == Shape{1, 2});
    CHECK(RunOnCounts(outcome.compiled.module, {1, 3, 2}).shape == Shape{3, 2});
  }
}

TEST_CASE("so many that compiling would not end") {
  onnx::ModelProto model = SqueezeModel();
  onnx::GraphProto* graph = model.mutable_graph();
  std::string last = "x";
  for (int i = 0; i < 40; ++i) {
    // Each gives one of two ranks from a condition of its own.
    const std::string name = "s" + std::to_string(i);
    SetValue(graph->add_input(), name + ".if", {}, onnx::TensorProto::BOOL);
    onnx::NodeProto* branch = AddNode(graph, "If", {name + ".if"}, name);
    onnx::GraphProto* then = AddGraph(branch, "then_branch");
    AddNode(then, "Unsqueeze", {last, "zeroth"}, name + ".up");
    SetValue(then->add_output(), name + ".up", {});
    onnx::GraphProto* otherwise = AddGraph(branch, "else_branch");
    AddNode(otherwise, "Identity", {last}, name + ".same");
    SetValue(otherwise->add_output(), name + ".same", {});
    last = name;
  }
  AddNode(graph, "Relu", {last}, "y");
  CHECK_THAT(CompileProto(model).message, Catch::Contains("raise --max-work"));
}

}  // namespace
}  // namespace rewire::test
