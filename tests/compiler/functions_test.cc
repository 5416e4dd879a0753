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
  onnx::OperatorSetIdProto* local = model.add_opset_import();
  local->set_domain("local");
  local->set_version(1);
  onnx::FunctionProto* function = model.add_functions();
  function->set_domain("local");
  function->set_name("Between");
  for (const char* input : {"value", "low", "high"}) function->add_input(input);
  function->add_output("result");
  function->add_opset_import()->set_version(13);
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
  onnx::OperatorSetIdProto* local = model.add_opset_import();
  local->set_domain("local");
  local->set_version(1);
  onnx::FunctionProto* function = model.add_functions();
  function->set_domain("local");
  function->set_name("Scale");
  function->add_input("a");
  function->add_output("b");
  function->add_opset_import()->set_version(13);
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

TEST_CASE("two functions of one name are refused") {
  onnx::ModelProto model = EmptyModel();
  for (int i = 0; i < 2; ++i) {
    onnx::FunctionProto* function = model.add_functions();
    function->set_domain("local");
    function->set_name("Twice");
  }
  CHECK(CompileProto(model).message ==
        "model: there are two functions 'Twice' of domain 'local'; overloads are not supported");
}

}  // namespace
}  // namespace rewire::test
