// SPDX-License-Identifier: Apache-2.0
// Functions that a model brings along.
#include <google/protobuf/unknown_field_set.h>

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "rewire/tests/compiler/model_builder.h"

namespace rewire::test {
namespace {

TEST_CASE("an input that the call of a function leaves out is left out in its body") {
  onnx::ModelProto model = EmptyModel();
  onnx::FunctionProto* function = AddFunction(&model, "Between", {"value", "low", "high"}, {"result"});
  onnx::GraphProto body;
  AddNode(&body, "Clip", {"value", "low", "high"}, "result");
  *function->add_node() = body.node(0);
  onnx::GraphProto* graph = model.mutable_graph();
  SetValue(graph->add_input(), "x", {4});
  AddFloats(graph, "two", {}, {2});
  AddNode(graph, "Between", {"x", "", "two"}, "y")->set_domain("local");
  SetValue(graph->add_output(), "y", {4});
  const Outcome outcome = CompileProto(model);
  CHECK(outcome.message.empty());
  CHECK(RunOnCounts(outcome.compiled.module, {4}).values == std::vector<float>{0, 1, 2, 2});
}

// FunctionProto.attribute_proto is younger than the protobuf classes that this may be built with: field 11.
void AddDefault(onnx::FunctionProto* function, const onnx::AttributeProto& attribute) {
  function->GetReflection()->MutableUnknownFields(function)->AddLengthDelimited(
      11, attribute.SerializeAsString());
}

TEST_CASE("attributes of a function have defaults") {
  onnx::ModelProto model = EmptyModel();
  onnx::FunctionProto* function = AddFunction(&model, "Scale", {"a"}, {"b"});
  onnx::GraphProto body;
  onnx::AttributeProto* value = AddNode(&body, "Constant", {}, "factor")->add_attribute();
  value->set_name("value_float");
  value->set_type(onnx::AttributeProto::FLOAT);
  value->set_ref_attr_name("alpha");
  AddNode(&body, "Mul", {"a", "factor"}, "b");
  *function->mutable_node() = body.node();
  onnx::AttributeProto alpha;
  alpha.set_name("alpha");
  alpha.set_type(onnx::AttributeProto::FLOAT);
  alpha.set_f(3);
  AddDefault(function, alpha);
  onnx::GraphProto* graph = model.mutable_graph();
  SetValue(graph->add_input(), "x", {2});
  onnx::NodeProto* call = AddNode(graph, "Scale", {"x"}, "y");
  call->set_domain("local");
  SetValue(graph->add_output(), "y", {2});
  SECTION("which hold where the call gives none") {
    const Outcome outcome = CompileProto(model);
    REQUIRE(outcome.message.empty());
    CHECK(RunOnCounts(outcome.compiled.module, {2}).values == std::vector<float>{0, 3});
  }
  SECTION("and not where it does") {
    alpha.set_f(5);
    *call->add_attribute() = alpha;
    const Outcome outcome = CompileProto(model);
    REQUIRE(outcome.message.empty());
    CHECK(RunOnCounts(outcome.compiled.module, {2}).values == std::vector<float>{0, 5});
  }
}

// A function with one node, from "a" to "b".
onnx::FunctionProto* AddFunctionOf(onnx::ModelProto* model, const std::string& name, const std::string& type,
                                   const std::string& domain) {
  onnx::FunctionProto* function = AddFunction(model, name, {"a"}, {"b"});
  onnx::GraphProto body;
  AddNode(&body, type, {"a"}, "b")->set_domain(domain);
  *function->add_node() = body.node(0);
  return function;
}

// Each function hands an attribute to the next one inside it, or not, and has a default for its own, or not.
// The innermost gives it to LeakyRelu, whose own is 0.01.
TEST_CASE(
    "an attribute of nested functions is what the nearest call outside gives, or else the nearest default") {
  constexpr int kDepth = 3;
  constexpr float kOwn = 0.01F;
  for (unsigned form = 0; form < 1U << (2 * kDepth); ++form) {
    onnx::ModelProto model = EmptyModel();
    float expected = kOwn;
    for (int i = 0; i < kDepth; ++i) {
      const bool innermost = i == 0;
      onnx::FunctionProto* function =
          AddFunctionOf(&model, "F" + std::to_string(i),
                        innermost ? "LeakyRelu" : "F" + std::to_string(i - 1), innermost ? "" : "local");
      const bool hands_on = innermost || (form >> (2 * i) & 1) != 0,
                 has_default = (form >> (2 * i + 1) & 1) != 0;
      const std::string own = "own" + std::to_string(i);
      if (hands_on) {
        onnx::AttributeProto* handed = function->mutable_node(0)->add_attribute();
        handed->set_name(innermost ? "alpha" : "own" + std::to_string(i - 1));
        handed->set_type(onnx::AttributeProto::FLOAT);
        handed->set_ref_attr_name(own);
      }
      if (has_default) {
        onnx::AttributeProto value;
        value.set_name(own);
        value.set_type(onnx::AttributeProto::FLOAT);
        value.set_f(-1.0F - static_cast<float>(i));
        AddDefault(function, value);
      } else {
        function->add_attribute(own);
      }
    }
    // The chain of functions that hand the attribute on, from the inside to the outside: the last default
    // counts.
    for (int i = 0; i < kDepth; ++i) {
      if (i > 0 && (form >> (2 * i) & 1) == 0) break;
      if ((form >> (2 * i + 1) & 1) != 0) expected = -1.0F - static_cast<float>(i);
    }
    const bool given = (form & 1) != 0;
    onnx::GraphProto* graph = model.mutable_graph();
    SetValue(graph->add_input(), "x", {2});
    AddFloats(graph, "one", {}, {1});
    AddNode(graph, "Sub", {"x", "one"}, "below");  // -1, 0
    onnx::NodeProto* call = AddNode(graph, "F2", {"below"}, "y");
    call->set_domain("local");
    SetValue(graph->add_output(), "y", {2});
    if (given) {
      onnx::AttributeProto* value = call->add_attribute();
      value->set_name("own2");
      value->set_type(onnx::AttributeProto::FLOAT);
      value->set_f(9);
      if ((form >> 2 & 1) != 0 && (form >> 4 & 1) != 0) expected = 9;
    }
    INFO("form " << form);
    const Outcome outcome = CompileProto(model);
    REQUIRE(outcome.message.empty());
    CHECK(RunOnCounts(outcome.compiled.module, {2}).values == std::vector<float>{-expected, 0});
  }
}

// A function with two results, of which calls may use one: the largest along axis 1, and 2 x.
TEST_CASE("what a call's results do not need is left out of a function") {
  onnx::ModelProto model = EmptyModel();
  onnx::FunctionProto* function = AddFunction(&model, "Both", {"a"}, {"double", "largest"});
  onnx::GraphProto body;
  AddNode(&body, "Add", {"a", "a"}, "double");
  // Read by nothing, within a node that nothing reads.
  onnx::NodeProto* branches = AddNode(&body, "If", {"condition"}, "chosen");
  for (const char* name : {"then_branch", "else_branch"}) {
    onnx::GraphProto* branch = AddGraph(branches, name);
    AddNode(branch, "NoSuchOperator", {"a"}, "b");
    SetValue(branch->add_output(), "b", {});
  }
  AddNode(&body, "IsNaN", {"double"}, "condition");
  AddIntList(AddNode(&body, "ReduceMax", {"a"}, "largest"), "axes", {1});
  *function->mutable_node() = body.node();
  onnx::GraphProto* graph = model.mutable_graph();
  SetValue(graph->add_input(), "x", {2});
  onnx::NodeProto* call = AddNode(graph, "Both", {"x"}, "y");
  call->set_domain("local");
  SetValue(graph->add_output(), "y", {2});
  SECTION("an operator that has no meaning for the call's inputs") {
    const Outcome outcome = CompileProto(model);
    REQUIRE(outcome.message.empty());
    CHECK(RunOnCounts(outcome.compiled.module, {2}).values == std::vector<float>{0, 2});
  }
  SECTION("but not if its result is asked for") {
    call->add_output("z");
    SetValue(graph->add_output(), "z", {2});
    const Outcome outcome = CompileProto(model);
    REQUIRE(outcome.unsupported.size() == 1);
    CHECK(outcome.unsupported[0].op_type == "ReduceMax");
  }
}

TEST_CASE("two functions of one name are refused") {
  onnx::ModelProto model = EmptyModel();
  for (int i = 0; i < 2; ++i) AddFunction(&model, "Twice", {}, {});
  CHECK(CompileProto(model).message ==
        "model: there are two functions 'Twice' of domain 'local'; overloads are not supported");
}

}  // namespace
}  // namespace rewire::test
