// SPDX-License-Identifier: Apache-2.0
// Loops: which inputs may be left out, and what a body may give as its condition.
#include <catch2/catch.hpp>
#include <set>
#include <string>
#include <vector>

#include "rewire/tests/compiler/model_builder.h"

namespace rewire::test {
namespace {

// Doubles x[2] in each turn; goes on while the first element is under 8 and, if named, under trip and
// condition.
onnx::ModelProto DoublingModel(const std::string& trip, const std::string& condition) {
  onnx::ModelProto model = EmptyModel();
  onnx::GraphProto* graph = model.mutable_graph();
  SetValue(graph->add_input(), "x", {2});
  AddInts(graph, "two", {2}, true);
  AddInts(graph, "zero", {0}, true);
  AddFloats(graph, "eight", {}, {8});
  AddNode(graph, "Cast", {"two"}, "always");
  AddInt(graph->mutable_node(0), "to", onnx::TensorProto::BOOL);
  onnx::NodeProto* loop = AddNode(graph, "Loop", {trip, condition, "x"}, "y");
  onnx::GraphProto* body = AddGraph(loop, "body");
  SetValue(body->add_input(), "turn", {}, onnx::TensorProto::INT64);
  SetValue(body->add_input(), "go_on", {}, onnx::TensorProto::BOOL);
  SetValue(body->add_input(), "before", {2});
  AddNode(body, "Add", {"before", "before"}, "after");
  AddNode(body, "Gather", {"after", "zero"}, "first");
  AddNode(body, "Less", {"first", "eight"}, "below");
  SetValue(body->add_output(), "below", {}, onnx::TensorProto::BOOL);
  SetValue(body->add_output(), "after", {2});
  SetValue(graph->add_output(), "y", {2});
  return model;
}

// The counts of RunOnCounts are 0 and 1: the first element stays 0, so that only the trip count ends the
// loop.
TEST_CASE("a loop without a condition runs its trip count") {
  const Outcome outcome = CompileProto(DoublingModel("two", ""));
  REQUIRE(outcome.message.empty());
  CHECK(RunOnCounts(outcome.compiled.module, {2}).values == std::vector<float>{0, 4});
}

TEST_CASE("a loop without a trip count, or without both, ends by its body's condition") {
  for (const char* condition : {"always", ""}) {
    INFO(condition);
    onnx::ModelProto model = DoublingModel("", condition);
    // Counted from the second element: 1, 2, 4, 8.
    AddInts(model.mutable_graph(), "one", {1}, true);
    onnx::GraphProto* body = model.mutable_graph()->mutable_node(1)->mutable_attribute(0)->mutable_g();
    body->mutable_node(1)->set_input(1, "one");
    const Outcome outcome = CompileProto(model);
    REQUIRE(outcome.message.empty());
    CHECK(RunOnCounts(outcome.compiled.module, {2}).values == std::vector<float>{0, 8});
  }
}

// Both lists begin empty, and one is of pairs, the other of single numbers.
TEST_CASE("a loop stacks elements of different shapes apart") {
  onnx::ModelProto model = EmptyModel();
  onnx::GraphProto* graph = model.mutable_graph();
  SetValue(graph->add_input(), "x", {2});
  AddInts(graph, "three", {3}, true);
  AddInts(graph, "zero", {0}, true);
  onnx::NodeProto* loop = AddNode(graph, "Loop", {"three", ""}, "pairs");
  loop->add_output("firsts");
  onnx::GraphProto* body = AddGraph(loop, "body");
  SetValue(body->add_input(), "turn", {}, onnx::TensorProto::INT64);
  SetValue(body->add_input(), "go_on", {}, onnx::TensorProto::BOOL);
  AddNode(body, "Identity", {"go_on"}, "on");
  AddNode(body, "Neg", {"x"}, "pair");
  AddNode(body, "Gather", {"x", "zero"}, "first");
  SetValue(body->add_output(), "on", {}, onnx::TensorProto::BOOL);
  SetValue(body->add_output(), "pair", {2});
  SetValue(body->add_output(), "first", {});
  AddNode(graph, "ReduceSum", {"pairs"}, "all");
  AddNode(graph, "ReduceSum", {"firsts"}, "some");
  AddNode(graph, "Sub", {"some", "all"}, "y");
  SetValue(graph->add_output(), "y", {});
  const Outcome outcome = CompileProto(model);
  INFO(outcome.message);
  REQUIRE(outcome.message.empty());
  CHECK(RunOnCounts(outcome.compiled.module, {2}).values == std::vector<float>{3});
}

// Each turn puts an axis in front of the carried value, and adds the sum of all to it. Rows of equal rank are
// stacked up.
onnx::ModelProto GrowingRank(bool condition) {
  onnx::ModelProto model = EmptyModel();
  onnx::GraphProto* graph = model.mutable_graph();
  SetValue(graph->add_input(), "x", {2});
  AddInts(graph, "three", {3}, true);
  AddInts(graph, "front", {0});
  AddInts(graph, "row", {2});
  onnx::NodeProto* loop = AddNode(graph, "Loop", {"three", "", "x"}, "grown");
  loop->add_output("rows");
  onnx::GraphProto* body = AddGraph(loop, "body");
  SetValue(body->add_input(), "turn", {}, onnx::TensorProto::INT64);
  SetValue(body->add_input(), "go_on", {}, onnx::TensorProto::BOOL);
  body->add_input()->set_name("before");
  AddNode(body, "Identity", {"go_on"}, "on");
  AddNode(body, "Unsqueeze", {"before", "front"}, "wide");
  AddNode(body, "ReduceSum", {"wide"}, "sum");
  AddNode(body, "Add", {"wide", "sum"}, "after");
  AddNode(body, "Reshape", {"after", "row"}, "flat");
  AddNode(body, "ReduceMax", {"flat"}, "greatest");
  AddNode(body, "Less", {"turn", "three"}, "below");
  SetValue(body->add_output(), condition ? "below" : "on", {}, onnx::TensorProto::BOOL);
  body->add_output()->set_name("after");
  body->add_output()->set_name("flat");
  AddNode(graph, "ReduceSum", {"rows"}, "all");
  AddNode(graph, "Sub", {"grown", "all"}, "y");
  graph->add_output()->set_name("y");
  return model;
}

TEST_CASE("a carried value may change its rank in each of a known number of turns") {
  const Outcome outcome = CompileProto(GrowingRank(false));
  INFO(outcome.message);
  REQUIRE(outcome.message.empty());
  const Answer answer = RunOnCounts(outcome.compiled.module, {2});
  CHECK(answer.shape == Shape{1, 1, 1, 2});
  // 0 1, 1 2, 4 5, 13 14; all rows together are 39.
  CHECK(answer.values == std::vector<float>{-26, -25});
}

TEST_CASE("a carried value of no known rank is refused where the number of turns is not known") {
  const Outcome outcome = CompileProto(GrowingRank(true));
  REQUIRE(outcome.unsupported.size() == 1);
  CHECK(outcome.unsupported[0].op_type == "Unsqueeze");
  CHECK(outcome.unsupported[0].reason ==
        "the rank of input 0, 'carried', is not known; fixing dimensions (--dim) may show it");
}

// A body with a value that grows is lowered for the size that it begins with, and again for any. The input's
// dimension has a name that is long enough for values of the body to get a symbol of their own for it.
TEST_CASE("a body that is lowered again reads no sizes of what was lowered before") {
  onnx::ModelProto model = EmptyModel();
  onnx::GraphProto* graph = model.mutable_graph();
  const std::string input(120, 'n');
  SetValue(graph->add_input(), input, {""});
  AddInts(graph, "three", {3}, true);
  AddFloats(graph, "one", {1}, {7});
  onnx::NodeProto* loop = AddNode(graph, "Loop", {"three", "", "one"}, "grown");
  loop->add_output("rows");
  onnx::GraphProto* body = AddGraph(loop, "body");
  SetValue(body->add_input(), "turn", {}, onnx::TensorProto::INT64);
  SetValue(body->add_input(), "go_on", {}, onnx::TensorProto::BOOL);
  SetValue(body->add_input(), "before", {""});
  AddInt(AddNode(body, "Concat", {"before", "one"}, "after"), "axis", 0);
  AddNode(body, "Exp", {input}, "first");
  AddNode(body, "Neg", {"first"}, "second");
  SetValue(body->add_output(), "go_on", {}, onnx::TensorProto::BOOL);
  SetValue(body->add_output(), "after", {""});
  SetValue(body->add_output(), "second", {""});
  AddNode(graph, "ReduceSum", {"rows"}, "all");
  AddNode(graph, "Add", {"grown", "all"}, "y");
  graph->add_output()->set_name("y");
  compiler::CompileOptions options;
  options.check_passes = true;
  const Outcome outcome = CompileProto(model, options);
  INFO(outcome.message);
  CHECK(outcome.message.empty());
}

// y = x W^3, where W and a term are carried along. The term is changed once it is doubled.
TEST_CASE("what a body gives on as it is stays the constant that it was") {
  const bool doubled = GENERATE(false, true);
  onnx::ModelProto model = EmptyModel();
  onnx::GraphProto* graph = model.mutable_graph();
  SetValue(graph->add_input(), "x", {1, 2});
  AddInts(graph, "three", {3}, true);
  AddFloats(graph, "w", {2, 2}, {1, 2, 0, 1});
  AddFloats(graph, "term", {1, 2}, {1, 0});
  onnx::NodeProto* loop = AddNode(graph, "Loop", {"three", "", "x", "w", "term"}, "product");
  loop->add_output("same_w");
  loop->add_output("last_term");
  onnx::GraphProto* body = AddGraph(loop, "body");
  SetValue(body->add_input(), "turn", {}, onnx::TensorProto::INT64);
  SetValue(body->add_input(), "go_on", {}, onnx::TensorProto::BOOL);
  SetValue(body->add_input(), "before", {1, 2});
  SetValue(body->add_input(), "w_in", {2, 2});
  SetValue(body->add_input(), "term_in", {1, 2});
  AddNode(body, "MatMul", {"before", "w_in"}, "after");
  AddNode(body, "Identity", {"w_in"}, "w_out");
  AddNode(body, doubled ? "Add" : "Max", {"term_in", "term_in"}, "term_out");
  SetValue(body->add_output(), "go_on", {}, onnx::TensorProto::BOOL);
  SetValue(body->add_output(), "after", {1, 2});
  SetValue(body->add_output(), "w_out", {2, 2});
  SetValue(body->add_output(), "term_out", {1, 2});
  AddNode(graph, "MatMul", {"product", "same_w"}, "again");
  AddNode(graph, "Add", {"again", "last_term"}, "y");
  SetValue(graph->add_output(), "y", {1, 2});
  const Outcome outcome = CompileProto(model);
  REQUIRE(outcome.message.empty());
  // x is {0, 1}: W adds twice the first element to the second one.
  CHECK(RunOnCounts(outcome.compiled.module, {1, 2}).values ==
        (doubled ? std::vector<float>{8, 1} : std::vector<float>{1, 1}));
  std::set<std::string> kernels;
  for (const KernelImport& kernel : outcome.compiled.module.kernels) kernels.insert(kernel.name);
  CHECK(kernels.contains("rewire.packed.matmul"));
  CHECK_FALSE(kernels.contains("rewire.matmul"));
}

// An optional sequence that grows by x in each of `turns` turns; y is how long it is in the end.
onnx::ModelProto GrowingModel(std::int64_t turns, bool holds_one) {
  onnx::ModelProto model = EmptyModel(17);
  onnx::GraphProto* graph = model.mutable_graph();
  SetValue(graph->add_input(), "x", {2});
  AddInts(graph, "turns", {turns}, true);
  AddNode(graph, "SequenceConstruct", {"x"}, "one");
  onnx::NodeProto* optional = AddNode(graph, "Optional", {}, "before");
  if (holds_one) optional->add_input("one");
  onnx::AttributeProto* type = optional->add_attribute();
  type->set_name("type");
  type->set_type(onnx::AttributeProto::TYPE_PROTO);
  onnx::TypeProto* element = type->mutable_tp()->mutable_sequence_type()->mutable_elem_type();
  element->mutable_tensor_type()->set_elem_type(onnx::TensorProto::FLOAT);
  onnx::NodeProto* loop = AddNode(graph, "Loop", {"turns", "", "before"}, "after");
  onnx::GraphProto* body = AddGraph(loop, "body");
  SetValue(body->add_input(), "turn", {}, onnx::TensorProto::INT64);
  SetValue(body->add_input(), "go_on", {}, onnx::TensorProto::BOOL);
  body->add_input()->set_name("carried");
  AddNode(body, "OptionalHasElement", {"carried"}, "is_there");
  onnx::NodeProto* branch = AddNode(body, "If", {"is_there"}, "held");
  onnx::GraphProto* then = AddGraph(branch, "then_branch");
  AddNode(then, "OptionalGetElement", {"carried"}, "then");
  then->add_output()->set_name("then");
  onnx::GraphProto* otherwise = AddGraph(branch, "else_branch");
  AddNode(otherwise, "SequenceEmpty", {}, "else");
  otherwise->add_output()->set_name("else");
  AddNode(body, "SequenceInsert", {"held", "x"}, "grown");
  SetValue(body->add_output(), "go_on", {}, onnx::TensorProto::BOOL);
  body->add_output()->set_name("grown");
  AddNode(graph, "SequenceLength", {"after"}, "length");
  AddInt(AddNode(graph, "Cast", {"length"}, "y"), "to", onnx::TensorProto::FLOAT);
  SetValue(graph->add_output(), "y", {});
  return model;
}

TEST_CASE("an optional that a body gives on as what it holds") {
  const auto run = [](std::int64_t turns, bool holds_one) {
    const Outcome outcome = CompileProto(GrowingModel(turns, holds_one));
    INFO(outcome.message << (outcome.unsupported.empty() ? "" : outcome.unsupported[0].reason));
    REQUIRE(outcome.message.empty());
    return RunOnCounts(outcome.compiled.module, {2});
  };
  CHECK(run(2, false).values == std::vector<float>{2});
  CHECK(run(2, true).values == std::vector<float>{3});
  // Without a turn it is what it was.
  CHECK(run(0, true).values == std::vector<float>{1});
  CHECK(!run(0, false).error.empty());
}

// Sums of x[N, T, 2] along its second axis, and what they were on the way, element by element of the batch.
onnx::ModelProto BatchScan() {
  onnx::ModelProto model = EmptyModel(8);
  onnx::GraphProto* graph = model.mutable_graph();
  SetValue(graph->add_input(), "x", {"N", "T", 2});
  AddFloats(graph, "minus", {}, {-1});
  AddNode(graph, "Mul", {"x", "minus"}, "negative");
  AddInts(graph, "first", {0});
  AddNode(graph, "ReduceSum", {"negative"}, "state");
  AddInt(graph->mutable_node(1), "keepdims", 0);
  AddIntList(graph->mutable_node(1), "axes", {1});
  onnx::NodeProto* scan = AddNode(graph, "Scan", {"", "state", "x"}, "sums");
  scan->add_output("y");
  AddInt(scan, "num_scan_inputs", 1);
  AddIntList(scan, "directions", {1});
  onnx::GraphProto* body = AddGraph(scan, "body");
  SetValue(body->add_input(), "before", {2});
  SetValue(body->add_input(), "element", {2});
  AddNode(body, "Add", {"before", "element"}, "after");
  AddNode(body, "Identity", {"after"}, "shown");
  SetValue(body->add_output(), "after", {2});
  SetValue(body->add_output(), "shown", {2});
  SetValue(graph->add_output(), "y", {});
  return model;
}

TEST_CASE("a scan of version 8 goes through a batch") {
  onnx::ModelProto model = BatchScan();
  const auto refused = [&] {
    const Outcome outcome = CompileProto(model);
    REQUIRE(outcome.unsupported.size() == 1);
    return outcome.unsupported[0].reason;
  };
  SECTION("each element by itself, from its end") {
    const Outcome outcome = CompileProto(model);
    REQUIRE(outcome.message.empty());
    const Answer answer = RunOnCounts(outcome.compiled.module, {2, 2, 2});
    CHECK(answer.shape == Shape{2, 2, 2});
    // From minus the sum, 2 4 and 10 12, the last element comes first.
    CHECK(answer.values == std::vector<float>{0, -1, 0, 0, -4, -5, 0, 0});
  }
  SECTION("without lengths of its sequences") {
    AddInts(model.mutable_graph(), "lengths", {1, 2});
    model.mutable_graph()->mutable_node(2)->set_input(0, "lengths");
    CHECK(refused() == "lengths of its sequences are not supported");
  }
  SECTION("of tensors that have one") {
    AddFloats(model.mutable_graph(), "scalar", {}, {1});
    model.mutable_graph()->mutable_node(2)->set_input(1, "scalar");
    CHECK(refused() == "input 1 is f32[], expected a batch of known rank");
  }
}

TEST_CASE("a condition that is no single value fails when the loop comes to it") {
  onnx::ModelProto model = DoublingModel("two", "always");
  onnx::GraphProto* body = model.mutable_graph()->mutable_node(1)->mutable_attribute(0)->mutable_g();
  // The shape of a scalar: i64[0].
  body->mutable_node(2)->set_op_type("Shape");
  body->mutable_node(2)->mutable_input()->RemoveLast();
  const Outcome outcome = CompileProto(model);
  REQUIRE(outcome.message.empty());
  CHECK_THAT(RunOnCounts(outcome.compiled.module, {2}).error, Catch::Contains("reshape"));
}

TEST_CASE("an input left out where all are needed is named") {
  for (const char* type : {"Einsum", "Concat", "Max", "SequenceConstruct"}) {
    INFO(type);
    onnx::ModelProto model = EmptyModel();
    onnx::GraphProto* graph = model.mutable_graph();
    SetValue(graph->add_input(), "x", {2});
    AddNode(graph, type, {"x", "", "x"}, "y");
    SetValue(graph->add_output(), "y", {});
    const Outcome outcome = CompileProto(model);
    REQUIRE(outcome.unsupported.size() == 1);
    CHECK(outcome.unsupported[0].reason == "input 1 is missing");
  }
}

}  // namespace
}  // namespace rewire::test
