// SPDX-License-Identifier: Apache-2.0
//
// Models with If and Loop that are compiled for the device: what lies there, how often it is copied, and that
// the results are those of the CPU.
#include <catch2/catch.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "rewire/tests/compiler/model_builder.h"
#include "rewire/tests/devices/test_device.h"

namespace rewire::test {
namespace {

// The copies between the sides, by the depth of the block in which they stand: 0 for main, 1 for a loop's
// body.
std::vector<int> CopiesByDepth(const std::string& text) {
  std::vector<int> copies(4, 0);
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.find(" = copy(") == std::string::npos) continue;
    ++copies[line.find_first_not_of(' ') / 4];
  }
  return copies;
}

// Compiles for the device, runs there and on the CPU, and returns the copies. The placed graph has a call of
// `expected_call`.
std::vector<int> CopiesOf(const onnx::ModelProto& model, const Shape& shape,
                          const std::string& expected_call = "rewire.device.") {
  std::string placed;
  compiler::CompileOptions options;
  options.device = DeviceName();
  options.least_device_work = 0;
  options.dump = [&](const std::string& stage, const std::string& text) {
    if (stage == "place") placed = text;
  };
  Outcome there = CompileProto(model, options);
  INFO(there.message);
  REQUIRE(there.message.empty());
  CHECK(there.compiled.device_calls > 0);
  Outcome here = CompileProto(model);
  REQUIRE(here.message.empty());
  const Answer given = RunOnCounts(std::move(there.compiled.module), shape);
  const Answer expected = RunOnCounts(std::move(here.compiled.module), shape);
  UNSCOPED_INFO(placed);
  CHECK(placed.find(expected_call) != std::string::npos);
  CHECK(given.error == "");
  CHECK(given.shape == expected.shape);
  REQUIRE(given.values.size() == expected.values.size());
  for (std::size_t i = 0; i < given.values.size(); ++i) {
    CHECK(given.values[i] == Approx(expected.values[i]).epsilon(1e-4).margin(1e-5));
  }
  return CopiesByDepth(placed);
}

onnx::ModelProto Model(const std::vector<Dim>& dims) {
  onnx::ModelProto model = EmptyModel();
  SetValue(model.mutable_graph()->add_input(), "x", dims);
  SetValue(model.mutable_graph()->add_output(), "y", {});
  std::vector<float> weights(256);
  for (std::size_t i = 0; i < 256; ++i) weights[i] = static_cast<float>(i * 7 % 5) * 0.1F - 0.2F;
  AddFloats(model.mutable_graph(), "w", {16, 16}, weights);
  return model;
}

// A loop's body that carries what `carried` names, and goes on.
onnx::GraphProto* AddBody(onnx::NodeProto* loop, const std::vector<std::string>& carried,
                          const std::vector<Dim>& dims) {
  onnx::GraphProto* body = AddGraph(loop, "body");
  SetValue(body->add_input(), "turn", {}, onnx::TensorProto::INT64);
  SetValue(body->add_input(), "go", {}, onnx::TensorProto::BOOL);
  for (const std::string& name : carried) SetValue(body->add_input(), name, dims);
  AddNode(body, "Identity", {"go"}, "go_on");
  SetValue(body->add_output(), "go_on", {}, onnx::TensorProto::BOOL);
  return body;
}

TEST_CASE("what a loop carries stays on the device, and what its body reads is copied once, before it") {
  onnx::ModelProto model = Model({4, 16});
  onnx::GraphProto* graph = model.mutable_graph();
  const std::int64_t turns = GENERATE(5, 0);
  AddInts(graph, "turns", {turns}, true);
  onnx::NodeProto* loop = AddNode(graph, "Loop", {"turns", "", "x"}, "y");
  onnx::GraphProto* body = AddBody(loop, {"v"}, {4, 16});
  AddNode(body, "MatMul", {"v", "w"}, "a");
  AddNode(body, "Add", {"a", "x"}, "b");
  AddNode(body, "Mul", {"b", "x"}, "c");
  AddNode(body, "Tanh", {"c"}, "next");
  SetValue(body->add_output(), "next", {4, 16});
  const std::vector<int> copies = CopiesOf(model, {4, 16});
  CHECK(copies[0] == 2);  // x to the device, y back; the last condition lies on the host
  CHECK(copies[1] == 0);
}

TEST_CASE("carried values that change places, in a loop in a loop") {
  onnx::ModelProto model = Model({4, 16});
  onnx::GraphProto* graph = model.mutable_graph();
  AddInts(graph, "turns", {3}, true);
  AddNode(graph, "Tanh", {"x"}, "start");
  onnx::NodeProto* outer = AddNode(graph, "Loop", {"turns", "", "start", "x"}, "p");
  outer->add_output("q");
  onnx::GraphProto* body = AddBody(outer, {"a", "b"}, {4, 16});
  onnx::NodeProto* inner = AddNode(body, "Loop", {"turns", "", "a", "b"}, "c");
  inner->add_output("d");
  onnx::GraphProto* inside = AddBody(inner, {"e", "f"}, {4, 16});
  inside->mutable_input(0)->set_name("inner_turn");
  inside->mutable_input(1)->set_name("inner_go");
  inside->mutable_node(0)->set_input(0, "inner_go");
  inside->mutable_node(0)->set_output(0, "inner_go_on");
  inside->mutable_output(0)->set_name("inner_go_on");
  AddNode(inside, "Add", {"e", "f"}, "sum");
  AddNode(inside, "Tanh", {"sum"}, "next");
  AddNode(inside, "Identity", {"f"}, "passed");
  SetValue(inside->add_output(), "passed", {4, 16});
  SetValue(inside->add_output(), "next", {4, 16});
  AddNode(body, "Identity", {"d"}, "d_out");
  AddNode(body, "Identity", {"c"}, "c_out");
  SetValue(body->add_output(), "d_out", {4, 16});
  SetValue(body->add_output(), "c_out", {4, 16});
  AddNode(graph, "Sub", {"p", "q"}, "y");
  const std::vector<int> copies = CopiesOf(model, {4, 16});
  CHECK(copies[0] == 2);
  CHECK(copies[1] == 0);
  CHECK(copies[2] == 0);
}

TEST_CASE("branches give what lies on the device; their condition stays on the host") {
  onnx::ModelProto model = Model({4, 16});
  onnx::GraphProto* graph = model.mutable_graph();
  AddInt(AddNode(graph, "ReduceSum", {"x"}, "sum"), "keepdims", 0);
  // The counts add up to 2016.
  AddFloats(graph, "limit", {}, {GENERATE(0.0F, 5000.0F)});
  AddNode(graph, "Greater", {"sum", "limit"}, "more");
  onnx::NodeProto* branch = AddNode(graph, "If", {"more"}, "chosen");
  onnx::GraphProto* then = AddGraph(branch, "then_branch");
  AddNode(then, "MatMul", {"x", "w"}, "product");
  SetValue(then->add_output(), "product", {4, 16});
  onnx::GraphProto* otherwise = AddGraph(branch, "else_branch");
  AddFloats(otherwise, "constant", {4, 16}, std::vector<float>(64, 0.5F));
  AddNode(otherwise, "Identity", {"constant"}, "other");
  SetValue(otherwise->add_output(), "other", {4, 16});
  AddNode(graph, "Tanh", {"chosen"}, "y");
  const std::vector<int> copies = CopiesOf(model, {4, 16});
  CHECK(copies[0] == 3);  // x to the device, the sum to the host, y to the host
  CHECK(copies[1] == 0);
}

TEST_CASE("a value that a kernel on the host reads in each iteration is copied there, and no other") {
  onnx::ModelProto model = Model({4, 4});
  onnx::GraphProto* graph = model.mutable_graph();
  AddInts(graph, "turns", {3}, true);
  onnx::NodeProto* loop = AddNode(graph, "Loop", {"turns", "", "x"}, "y");
  onnx::GraphProto* body = AddBody(loop, {"v"}, {4, 4});
  AddNode(body, "Tanh", {"v"}, "a");
  AddNode(body, "Det", {"a"}, "det");  // the device has no such kernel
  AddNode(body, "Sub", {"a", "det"}, "next");
  SetValue(body->add_output(), "next", {4, 4});
  const std::vector<int> copies = CopiesOf(model, {4, 4});
  CHECK(copies[0] == 2);
  CHECK(copies[1] == 2);  // a to the host, its determinant to the device
}

TEST_CASE("an index that a loop finds and reads on the device goes on there") {
  onnx::ModelProto model = Model({1, 16});
  onnx::GraphProto* graph = model.mutable_graph();
  AddInts(graph, "turns", {4}, true);
  AddInts(graph, "first", {3});
  onnx::NodeProto* loop = AddNode(graph, "Loop", {"turns", "", "x", "first"}, "y");
  loop->add_output("last");
  onnx::GraphProto* body = AddBody(loop, {"v"}, {1, 16});
  SetValue(body->add_input(), "index", {1}, onnx::TensorProto::INT64);
  AddNode(body, "Gather", {"w", "index"}, "row");
  AddNode(body, "Sub", {"v", "row"}, "next");
  onnx::NodeProto* most = AddNode(body, "ArgMax", {"next"}, "found");
  AddInt(most, "axis", 1);
  AddInt(most, "keepdims", 0);
  SetValue(body->add_output(), "next", {1, 16});
  SetValue(body->add_output(), "found", {1}, onnx::TensorProto::INT64);
  const std::vector<int> copies = CopiesOf(model, {1, 16});
  CHECK(copies[1] == 0);
}

TEST_CASE("where a slice begins is read on the host, and what is cut stays on the device") {
  onnx::ModelProto model = Model({4, 16});
  onnx::GraphProto* graph = model.mutable_graph();
  AddInts(graph, "turns", {4}, true);
  AddInts(graph, "one", {1});
  AddInts(graph, "rows", {0});
  onnx::NodeProto* loop = AddNode(graph, "Loop", {"turns", "", "x"}, "y");
  onnx::GraphProto* body = AddBody(loop, {"v"}, {4, 16});
  AddNode(body, "Reshape", {"turn", "one"}, "begin");
  AddNode(body, "Add", {"begin", "one"}, "end");
  AddNode(body, "Slice", {"x", "begin", "end", "rows"}, "row");
  AddNode(body, "Sub", {"v", "row"}, "next");
  SetValue(body->add_output(), "next", {4, 16});
  const std::vector<int> copies = CopiesOf(model, {4, 16}, "rewire.device.dynamic_slice");
  CHECK(copies[0] == 2);  // x to the device, y back; the last condition lies on the host
  CHECK(copies[1] == 0);
}

TEST_CASE("attention is one kernel of the device") {
  onnx::ModelProto model = Model({2, 9, 16});
  AddNode(model.mutable_graph(), "Sin", {"x"}, "wave");
  onnx::NodeProto* attention =
      AddNode(model.mutable_graph(), "MultiHeadAttention", {"wave", "wave", "wave"}, "y");
  attention->set_domain("com.microsoft");
  AddInt(attention, "num_heads", 4);
  AddInt(attention, "unidirectional", GENERATE(0, 1));
  onnx::OperatorSetIdProto* microsoft = model.add_opset_import();
  microsoft->set_domain("com.microsoft");
  microsoft->set_version(1);
  const std::vector<int> copies = CopiesOf(model, {2, 9, 16}, "rewire.device.attention");
  CHECK(copies[0] == 2);  // x to the device, y back; the last condition lies on the host
}

TEST_CASE("what a loop stacks up, and a condition that its body computes") {
  onnx::ModelProto model = Model({4, 16});
  onnx::GraphProto* graph = model.mutable_graph();
  AddInts(graph, "turns", {6}, true);
  AddFloats(graph, "limit", {}, {50});
  onnx::NodeProto* loop = AddNode(graph, "Loop", {"turns", "", "x"}, "last");
  loop->add_output("y");
  onnx::GraphProto* body = AddGraph(loop, "body");
  SetValue(body->add_input(), "turn", {}, onnx::TensorProto::INT64);
  SetValue(body->add_input(), "go", {}, onnx::TensorProto::BOOL);
  SetValue(body->add_input(), "v", {4, 16});
  AddNode(body, "MatMul", {"v", "w"}, "next");
  AddInt(AddNode(body, "ReduceMax", {"next"}, "largest"), "keepdims", 0);
  AddNode(body, "Less", {"largest", "limit"}, "go_on");
  AddNode(body, "Tanh", {"next"}, "row");
  SetValue(body->add_output(), "go_on", {}, onnx::TensorProto::BOOL);
  SetValue(body->add_output(), "next", {4, 16});
  SetValue(body->add_output(), "row", {4, 16});
  const std::vector<int> copies = CopiesOf(model, {4, 16});
  CHECK(copies[1] == 2);  // the largest element, and the row
}

TEST_CASE("an If in a loop that gives a carried value on as it is") {
  onnx::ModelProto model = Model({4, 16});
  onnx::GraphProto* graph = model.mutable_graph();
  AddInts(graph, "turns", {4}, true);
  AddInts(graph, "two", {2}, true);
  onnx::NodeProto* loop = AddNode(graph, "Loop", {"turns", "", "x"}, "y");
  onnx::GraphProto* body = AddBody(loop, {"v"}, {4, 16});
  AddNode(body, "Less", {"turn", "two"}, "early");
  onnx::NodeProto* branch = AddNode(body, "If", {"early"}, "next");
  onnx::GraphProto* then = AddGraph(branch, "then_branch");
  AddNode(then, "MatMul", {"v", "w"}, "product");
  SetValue(then->add_output(), "product", {4, 16});
  onnx::GraphProto* otherwise = AddGraph(branch, "else_branch");
  AddNode(otherwise, "Identity", {"v"}, "same");
  SetValue(otherwise->add_output(), "same", {4, 16});
  SetValue(body->add_output(), "next", {4, 16});
  const std::vector<int> copies = CopiesOf(model, {4, 16});
  CHECK(copies[0] == 2);
  CHECK(copies[1] == 0);
  CHECK(copies[2] == 0);
}

TEST_CASE("a condition that a loop carries, too, lies where the loop reads it") {
  onnx::ModelProto model = Model({4, 16});
  onnx::GraphProto* graph = model.mutable_graph();
  AddInts(graph, "turns", {6}, true);
  AddFloats(graph, "limit", {}, {50});
  AddInts(graph, "scalar", {});
  AddWeight(graph, "yes", onnx::TensorProto::BOOL, {})->set_raw_data(std::string(1, '\1'));
  onnx::NodeProto* loop = AddNode(graph, "Loop", {"turns", "", "x", "yes"}, "last");
  loop->add_output("small");
  onnx::GraphProto* body = AddGraph(loop, "body");
  SetValue(body->add_input(), "turn", {}, onnx::TensorProto::INT64);
  SetValue(body->add_input(), "go", {}, onnx::TensorProto::BOOL);
  SetValue(body->add_input(), "v", {4, 16});
  SetValue(body->add_input(), "was_small", {}, onnx::TensorProto::BOOL);
  AddNode(body, "MatMul", {"v", "w"}, "next");
  AddNode(body, "ReduceMax", {"next"}, "largest");
  // The tensor has two dimensions, so that it is no size, which the host would compute.
  AddNode(body, "Less", {"largest", "limit"}, "are_small");
  AddNode(body, "Reshape", {"are_small", "scalar"}, "is_small");
  SetValue(body->add_output(), "is_small", {}, onnx::TensorProto::BOOL);
  SetValue(body->add_output(), "next", {4, 16});
  SetValue(body->add_output(), "is_small", {}, onnx::TensorProto::BOOL);
  // The host reads the last condition again, for a shape.
  AddInt(AddNode(graph, "Cast", {"small"}, "number"), "to", onnx::TensorProto::INT64);
  AddInts(graph, "sizes", {3, 1, 1});
  AddNode(graph, "Max", {"number", "sizes"}, "shape");
  AddNode(graph, "Expand", {"last", "shape"}, "y");
  const std::vector<int> copies = CopiesOf(model, {4, 16});
  CHECK(copies[1] == 1);  // the condition to the host, and the carried one with it
  CHECK(copies[0] == 2);  // x to the device, y back; the last condition lies on the host
}

TEST_CASE("a result of the model is copied to the host in the branch that makes it on the device") {
  onnx::ModelProto model = Model({4, 16});
  onnx::GraphProto* graph = model.mutable_graph();
  AddInt(AddNode(graph, "ReduceSum", {"x"}, "sum"), "keepdims", 0);
  AddFloats(graph, "limit", {}, {GENERATE(0.0F, 5000.0F)});
  AddNode(graph, "Greater", {"sum", "limit"}, "more");
  onnx::NodeProto* branch = AddNode(graph, "If", {"more"}, "y");
  onnx::GraphProto* then = AddGraph(branch, "then_branch");
  AddNode(then, "MatMul", {"x", "w"}, "product");
  SetValue(then->add_output(), "product", {4, 16});
  onnx::GraphProto* otherwise = AddGraph(branch, "else_branch");
  AddFloats(otherwise, "constant", {4, 16}, std::vector<float>(64, 0.5F));
  AddNode(otherwise, "Identity", {"constant"}, "other");
  SetValue(otherwise->add_output(), "other", {4, 16});
  const std::vector<int> copies = CopiesOf(model, {4, 16});
  CHECK(copies[0] == 2);  // x to the device, the comparison to the host; no result
  CHECK(copies[1] == 1);
}

TEST_CASE("a view of a carried value lies where that does, and reads nothing itself") {
  onnx::ModelProto model = Model({4, 4});
  onnx::GraphProto* graph = model.mutable_graph();
  AddInts(graph, "turns", {3}, true);
  AddInts(graph, "flat", {2, 8});
  AddFloats(graph, "zero", {}, {0});
  AddFloats(graph, "left", {4, 2}, {0.5F, -0.25F, 0.125F, 0.5F, -0.5F, 0.25F, 0.25F, 0.5F});
  std::vector<float> right(32);
  for (std::size_t i = 0; i < right.size(); ++i) right[i] = static_cast<float>(i % 7) * 0.125F - 0.25F;
  AddFloats(graph, "right", {8, 4}, right);
  onnx::NodeProto* loop = AddNode(graph, "Loop", {"turns", "", "x", "zero"}, "last");
  loop->add_output("last_det");
  onnx::GraphProto* body = AddBody(loop, {"v"}, {4, 4});
  SetValue(body->add_input(), "det_before", {});
  AddNode(body, "Reshape", {"v", "flat"}, "view");
  AddNode(body, "MatMul", {"left", "view"}, "wide");
  AddNode(body, "MatMul", {"wide", "right"}, "square");
  AddNode(body, "Tanh", {"square"}, "next");
  AddNode(body, "Det", {"next"}, "det");  // the device has no such kernel
  SetValue(body->add_output(), "next", {4, 4});
  SetValue(body->add_output(), "det", {});
  AddNode(graph, "Det", {"last"}, "det_behind");
  AddNode(graph, "Sub", {"det_behind", "last_det"}, "difference");
  AddNode(graph, "Add", {"x", "difference"}, "y");
  const std::vector<int> copies = CopiesOf(model, {4, 4});
  CHECK(copies[1] == 1);  // what Det reads; the view stays
}

TEST_CASE("what is carried as a view of what the device makes stays there") {
  onnx::ModelProto model = Model({4, 16});
  onnx::GraphProto* graph = model.mutable_graph();
  AddInts(graph, "turns", {3}, true);
  AddInts(graph, "other_way", {16, 4});
  AddInts(graph, "back", {4, 16});
  onnx::NodeProto* loop = AddNode(graph, "Loop", {"turns", "", "x"}, "y");
  onnx::GraphProto* body = AddBody(loop, {"v"}, {4, 16});
  AddNode(body, "Reshape", {"v", "other_way"}, "view");
  AddNode(body, "MatMul", {"w", "view"}, "product");
  AddNode(body, "Tanh", {"product"}, "tanh");
  AddNode(body, "Reshape", {"tanh", "back"}, "next");
  SetValue(body->add_output(), "next", {4, 16});
  const std::vector<int> copies = CopiesOf(model, {4, 16});
  CHECK(copies[0] == 2);  // x to the device, y back; the last condition lies on the host
  CHECK(copies[1] == 0);
}

}  // namespace
}  // namespace rewire::test
