// SPDX-License-Identifier: Apache-2.0
// A Loop or a Scan of no turns stacks up tensors of the rank and the row sizes that it has otherwise.
#include <catch2/catch.hpp>

#include "rewire/tests/compiler/values/run_model.h"

namespace rewire::test {
namespace {

using onnx::TensorProto;

// Outputs: the stack, its shape, and one frame concatenated with the stack.
void AddOutputs(onnx::GraphProto* graph, const std::string& frame) {
  AddInts(graph, "front", {0});
  AddNode(graph, "Shape", {"stack"}, "shape");
  AddNode(graph, "Unsqueeze", {frame, "front"}, "first");
  AddInt(AddNode(graph, "Concat", {"first", "stack"}, "joined"), "axis", 0);
  for (const char* name : {"stack", "shape", "joined"}) {
    SetValue(graph->add_output(), name, {});
    graph->mutable_output(graph->output_size() - 1)->mutable_type()->mutable_tensor_type()->clear_shape();
  }
}

// Carries a [dims] and stacks up what it was before each turn.
onnx::ModelProto LoopModel(const std::vector<Dim>& dims) {
  onnx::ModelProto model = EmptyModel();
  onnx::GraphProto* graph = model.mutable_graph();
  SetValue(graph->add_input(), "turns", {}, TensorProto::INT64);
  SetValue(graph->add_input(), "a", dims);
  onnx::NodeProto* loop = AddNode(graph, "Loop", {"turns", "", "a"}, "last");
  loop->add_output("stack");
  onnx::GraphProto* body = AddGraph(loop, "body");
  SetValue(body->add_input(), "turn", {}, TensorProto::INT64);
  SetValue(body->add_input(), "go_on", {}, TensorProto::BOOL);
  SetValue(body->add_input(), "before", dims);
  AddNode(body, "Add", {"before", "before"}, "after");
  AddNode(body, "Identity", {"go_on"}, "still");
  AddNode(body, "Identity", {"before"}, "row");
  SetValue(body->add_output(), "still", {}, TensorProto::BOOL);
  SetValue(body->add_output(), "after", dims);
  SetValue(body->add_output(), "row", dims);
  AddOutputs(graph, "a");
  return model;
}

Elements Counts(const Shape& shape) {
  std::vector<float> values(static_cast<std::size_t>(CountOf(shape)));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  return ElementsOf(shape, values);
}

TEST_CASE("a loop of no turns stacks up nothing of its rows' shape") {
  for (const std::vector<Dim>& dims : {std::vector<Dim>{"N", 3}, std::vector<Dim>{2, 3},
                                       std::vector<Dim>{"N", "M"}, std::vector<Dim>{"N", "N"}}) {
    LinkedModel model(LoopModel(dims));
    REQUIRE(model.error() == "");
    for (const std::int64_t turns : {0, 1, 3}) {
      const bool square = dims[1] == Dim("N");
      const Shape row = {2, square ? 2 : 3};
      INFO(turns << " turns of " << row.size() << " axes");
      std::vector<Elements> inputs = {ElementsOf<std::int64_t>({}, {turns}), Counts(row)};
      REQUIRE(model.Run(&inputs) == "");
      CHECK(model.Output(0).shape == Shape{turns, row[0], row[1]});
      CHECK(model.Output(1) == ElementsOf<std::int64_t>({3}, {turns, row[0], row[1]}));
      CHECK(model.Output(2).shape == Shape{turns + 1, row[0], row[1]});
    }
  }
}

// Rows grow by one element a turn: the first would be as long as what the loop begins with.
TEST_CASE("rows of a carried value that grows begin with its first size") {
  onnx::ModelProto model = EmptyModel();
  onnx::GraphProto* graph = model.mutable_graph();
  SetValue(graph->add_input(), "turns", {}, TensorProto::INT64);
  SetValue(graph->add_input(), "a", {"N"});
  AddFloats(graph, "one", {1}, {7});
  onnx::NodeProto* loop = AddNode(graph, "Loop", {"turns", "", "a"}, "last");
  loop->add_output("stack");
  onnx::GraphProto* body = AddGraph(loop, "body");
  SetValue(body->add_input(), "turn", {}, TensorProto::INT64);
  SetValue(body->add_input(), "go_on", {}, TensorProto::BOOL);
  SetValue(body->add_input(), "before", {""});
  AddInt(AddNode(body, "Concat", {"before", "one"}, "after"), "axis", 0);
  AddNode(body, "Identity", {"go_on"}, "still");
  SetValue(body->add_output(), "still", {}, TensorProto::BOOL);
  SetValue(body->add_output(), "after", {""});
  SetValue(body->add_output(), "after", {""});
  SetValue(graph->add_output(), "last", {""});
  SetValue(graph->add_output(), "stack", {"", ""});
  LinkedModel linked(model);
  REQUIRE(linked.error() == "");
  for (const std::int64_t turns : {0, 1}) {
    std::vector<Elements> inputs = {ElementsOf<std::int64_t>({}, {turns}), Counts({4})};
    REQUIRE(linked.Run(&inputs) == "");
    CHECK(linked.Output(0).shape == Shape{4 + turns});
    CHECK(linked.Output(1).shape == Shape{turns, 5});
  }
}

// Scans x along `axis`, and `other` along its first, whose rows are added.
onnx::ModelProto ScanModel(const std::vector<Dim>& of_x, const std::vector<Dim>& of_other) {
  onnx::ModelProto model = EmptyModel();
  onnx::GraphProto* graph = model.mutable_graph();
  SetValue(graph->add_input(), "x", of_x);
  SetValue(graph->add_input(), "other", of_other);
  onnx::NodeProto* scan = AddNode(graph, "Scan", {"x", "other"}, "stack");
  AddInt(scan, "num_scan_inputs", 2);
  onnx::GraphProto* body = AddGraph(scan, "body");
  SetValue(body->add_input(), "row", {""});
  SetValue(body->add_input(), "add", {""});
  AddNode(body, "Add", {"row", "add"}, "sum");
  SetValue(body->add_output(), "sum", {""});
  SetValue(graph->add_output(), "stack", {"", ""});
  return model;
}

TEST_CASE("a scan of nothing stacks up nothing of its rows' shape") {
  LinkedModel model(ScanModel({"T", "N"}, {"T", "N"}));
  REQUIRE(model.error() == "");
  for (const std::int64_t turns : {0, 2}) {
    std::vector<Elements> inputs = {Counts({turns, 3}), Counts({turns, 3})};
    REQUIRE(model.Run(&inputs) == "");
    CHECK(model.Output().shape == Shape{turns, 3});
  }
}

TEST_CASE("inputs of different lengths are not scanned") {
  LinkedModel model(ScanModel({"T", "N"}, {"S", "N"}));
  REQUIRE(model.error() == "");
  for (const std::int64_t length : {0, 1, 2, 3}) {
    std::vector<Elements> inputs = {Counts({2, 3}), Counts({length, 3})};
    const std::string error = model.Run(&inputs);
    if (length == 2) {
      CHECK(error == "");
      continue;
    }
    CHECK(error.find("the lengths of what Scan scans are [2, " + std::to_string(length) +
                     "], expected to be equal") != std::string::npos);
  }
  CHECK(LinkedModel(ScanModel({2, "N"}, {3, "N"})).error().find("scans have lengths [2, 3], expected one") !=
        std::string::npos);
}

}  // namespace
}  // namespace rewire::test
