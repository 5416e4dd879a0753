// SPDX-License-Identifier: Apache-2.0
// Operators of sets before 7 whose second input lies along an axis that an attribute names.
#include <catch2/catch.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "rewire/compiler/lower/registry.h"
#include "rewire/tests/compiler/one_output.h"

namespace rewire::test {
namespace {

bool BroadcastsByAttribute(const compiler::DomainOperator& each) {
  return std::string_view(each.domain).empty() &&
         std::string_view(each.row->attributes).find("axis<7 broadcast<7") != std::string_view::npos;
}

// Gives the operator's answer for 0 to 23 in [2, 3, 4] beside [1, 2, 3] along axis 1, as this operator set
// writes it.
std::vector<float> AnswerOf(const std::string& type, std::int64_t opset) {
  OneOutput model(opset, {2, 3, 4});
  onnx::GraphProto* graph = model.graph();
  const auto node = [&](const std::string& kind, const std::vector<std::string>& inputs,
                        const std::string& output, std::int64_t axis) {
    onnx::NodeProto* made = AddNode(graph, kind, inputs, output);
    if (opset >= 7) return;
    AddInt(made, "broadcast", 1);
    if (axis >= 0) AddInt(made, "axis", axis);
  };
  AddFloats(graph, "b", opset < 7 ? Shape{3} : Shape{3, 1}, {1, 2, 3});
  AddFloats(graph, "limit", {1}, {2});
  const bool is_logical = type == "And" || type == "Or" || type == "Xor";
  if (is_logical) {
    node("Greater", {"x", "limit"}, "left", -1);
    node("Less", {"b", "limit"}, "right", -1);
    node(type, {"left", "right"}, "made", 1);
  } else {
    node(type, {"x", "b"}, "made", 1);
  }
  AddInt(AddNode(graph, "Cast", {"made"}, "y"), "to", onnx::TensorProto::FLOAT);
  return model.Run({2, 3, 4}).values;
}

TEST_CASE("an axis says where the second input lies, in each operator that has one before operator set 7") {
  int operators = 0;
  for (const compiler::DomainOperator& each : compiler::AllOperators()) {
    if (!BroadcastsByAttribute(each)) continue;
    INFO(each.row->type);
    CHECK(AnswerOf(each.row->type, 6) == AnswerOf(each.row->type, 13));
    ++operators;
  }
  CHECK(operators == 11);
}

}  // namespace
}  // namespace rewire::test
