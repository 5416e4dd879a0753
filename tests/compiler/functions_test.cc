// SPDX-License-Identifier: Apache-2.0
// Functions that a model brings along.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "tests/compiler/model_builder.h"

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

}  // namespace
}  // namespace rewire::test
