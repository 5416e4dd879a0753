// SPDX-License-Identifier: Apache-2.0
// Inputs that declare no shape.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "rewire/compiler/lower/registry.h"
#include "rewire/tests/compiler/one_output.h"

namespace rewire::test {
namespace {

class Shapeless : public OneOutput {
 public:
  explicit Shapeless(std::int64_t opset = 21) : OneOutput(opset, {}) {
    graph()->mutable_input(0)->mutable_type()->mutable_tensor_type()->clear_shape();
  }
  // The reason for which the model is refused; empty if it is not.
  std::string Refusal() {
    const Outcome outcome = CompileProto(*model());
    return outcome.unsupported.empty() ? outcome.message : outcome.unsupported[0].reason;
  }
};

TEST_CASE("an input without a shape has the rank that a node takes") {
  Shapeless model;
  onnx::GraphProto* graph = model.graph();
  SECTION("a convolution that of its weights, also behind nodes that keep the rank") {
    AddFloats(graph, "two", {}, {2});
    AddFloats(graph, "w", {1, 1, 1, 2}, {1, 10});
    AddNode(graph, "Relu", {"x"}, "r");
    AddNode(graph, "Mul", {"two", "r"}, "m");
    AddNode(graph, "Conv", {"m", "w"}, "y");
    model.Expect({1, 1, 2, 3}, {1, 1, 2, 2}, {20, 42, 86, 108});
  }
  SECTION("a matrix product with bias: 2") {
    AddFloats(graph, "w", {2, 1}, {1, 10});
    AddNode(graph, "Gemm", {"x", "w"}, "y");
    model.Expect({2, 2}, {2, 1}, {10, 32});
  }
  SECTION("a transposition that of its order") {
    AddIntList(AddNode(graph, "Transpose", {"x"}, "y"), "perm", {1, 0});
    model.Expect({2, 2}, {2, 2}, {0, 2, 1, 3});
  }
  SECTION("a pool two more than its window") {
    AddIntList(AddNode(graph, "MaxPool", {"x"}, "y"), "kernel_shape", {2});
    model.Expect({1, 1, 3}, {1, 1, 2}, {1, 2});
  }
  SECTION("padding half of what it adds") {
    AddInts(graph, "pads", {0, 1, 0, 0});
    AddNode(graph, "Pad", {"x", "pads"}, "y");
    model.Expect({1, 2}, {1, 3}, {0, 0, 1});
  }
}

TEST_CASE("every operator whose row says so passes the rank of its result on to its input") {
  constexpr int kOpset = 21;
  int run = 0;
  for (const compiler::DomainOperator& each : compiler::AllOperators()) {
    const compiler::Operator& row = *each.row;
    if (*each.domain != 0 || (row.flags & compiler::kKeepsRank) == 0 || row.least_inputs != 1) continue;
    if (row.since > kOpset || (row.until != 0 && row.until < kOpset)) continue;
    INFO(row.type);
    Shapeless model(kOpset);
    onnx::GraphProto* graph = model.graph();
    AddNode(graph, row.type, {"x"}, "kept");
    AddInt(AddNode(graph, "Cast", {"kept"}, "floats"), "to", onnx::TensorProto::FLOAT);
    AddIntList(AddNode(graph, "Transpose", {"floats"}, "y"), "perm", {1, 0});
    const Outcome outcome = CompileProto(*model.model());
    if (!outcome.unsupported.empty()) CHECK_THAT(outcome.unsupported[0].reason, !Catch::Contains("rank"));
    if (!outcome.unsupported.empty() || !outcome.message.empty()) continue;  // it takes other elements
    ++run;
    CHECK(RunOnCounts(outcome.compiled.module, {2, 3}).shape == Shape{3, 2});
  }
  CHECK(run > 40);
}

TEST_CASE("both operands of an operator whose row says so have the rank of its result, but for a lower one") {
  int run = 0;
  for (const compiler::DomainOperator& each : compiler::AllOperators()) {
    if (*each.domain != 0 || (each.row->flags & compiler::kJoinsRanks) == 0) continue;
    INFO(each.row->type);
    Shapeless model;
    AddFloats(model.graph(), "two", {1}, {2});
    AddNode(model.graph(), each.row->type, {"two", "x"}, "joined");
    AddIntList(AddNode(model.graph(), "Transpose", {"joined"}, "y"), "perm", {1, 0});
    const Outcome outcome = CompileProto(*model.model());
    CHECK(outcome.message.empty());
    REQUIRE(outcome.unsupported.empty());
    ++run;
    CHECK(RunOnCounts(outcome.compiled.module, {2, 3}).shape == Shape{3, 2});
  }
  CHECK(run == 5);
}

TEST_CASE("dimensions of an implied rank can be fixed by their places") {
  Shapeless model;
  AddIntList(AddNode(model.graph(), "Transpose", {"x"}, "y"), "perm", {1, 0});
  compiler::CompileOptions options;
  options.dims = {{"x.1", 3}};
  const Outcome outcome = CompileProto(*model.model(), options);
  REQUIRE(outcome.message.empty());
  CHECK(RunOnCounts(outcome.compiled.module, {1, 3}).shape == Shape{3, 1});
  options.dims = {{"x.2", 3}};
  CHECK_THAT(CompileProto(*model.model(), options).message, Catch::Contains("x.2"));
}

TEST_CASE("what implies no rank, or two, is refused") {
  Shapeless model;
  onnx::GraphProto* graph = model.graph();
  SECTION("softmax alone") { AddNode(graph, "Softmax", {"x"}, "y"); }
  SECTION("an operand of a higher rank says nothing") {
    AddFloats(graph, "w", {1, 1}, {1});
    AddNode(graph, "Add", {"x", "w"}, "a");
    AddIntList(AddNode(graph, "Transpose", {"a"}, "t"), "perm", {1, 0});
    AddNode(graph, "Softmax", {"x"}, "y");
  }
  SECTION("two orders of different ranks") {
    AddIntList(AddNode(graph, "Transpose", {"x"}, "t"), "perm", {1, 0});
    AddIntList(AddNode(graph, "Transpose", {"x"}, "y"), "perm", {0, 2, 1});
  }
  CHECK_THAT(model.Refusal(), Catch::Matches("the rank of input 0, .*, is not known; fixing dimensions .*"));
}

TEST_CASE("elementwise nodes take values of unknown rank") {
  Shapeless model;
  onnx::GraphProto* graph = model.graph();
  AddFloats(graph, "one", {}, {1});
  AddFloats(graph, "row", {1, 3}, {5, 6, 7});
  SECTION("Clip by constants and by values") {
    AddFloats(graph, "three", {}, {3});
    AddNode(graph, "Clip", {"x", "one"}, "c");
    AddNode(graph, "Min", {"three", "three"}, "most");
    AddNode(graph, "Clip", {"c", "", "most"}, "y");
    model.Expect({5}, {5}, {1, 1, 2, 3, 3});
  }
  SECTION("PRelu") {
    AddNode(graph, "Neg", {"x"}, "n");
    AddFloats(graph, "slope", {3}, {1, 2, 3});
    AddNode(graph, "PRelu", {"n", "slope"}, "y");
    model.Expect({2, 3}, {2, 3}, {0, -2, -6, -3, -8, -15});
  }
  SECTION("IsNaN, IsInf and Where") {
    AddNode(graph, "Div", {"x", "x"}, "q");
    AddNode(graph, "IsNaN", {"q"}, "nan");
    AddNode(graph, "Where", {"nan", "row", "x"}, "y");
    model.Expect({3}, {1, 3}, {5, 1, 2});
  }
  SECTION("IsInf") {
    AddNode(graph, "Reciprocal", {"x"}, "q");
    AddNode(graph, "IsInf", {"q"}, "inf");
    AddNode(graph, "Where", {"inf", "one", "x"}, "y");
    model.Expect({2, 2}, {2, 2}, {1, 1, 2, 3});
  }
  SECTION("Size") {
    AddNode(graph, "Size", {"x"}, "n");
    AddInt(AddNode(graph, "Cast", {"n"}, "y"), "to", onnx::TensorProto::FLOAT);
    model.Expect({2, 3}, {}, {6});
  }
}

}  // namespace
}  // namespace rewire::test
