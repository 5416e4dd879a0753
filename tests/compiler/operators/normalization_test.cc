// SPDX-License-Identifier: Apache-2.0
// Normalizations: what they give for a norm of 0, and what they count.
#include <catch2/catch.hpp>
#include <utility>

#include "rewire/tests/compiler/one_output.h"

namespace rewire::test {
namespace {

TEST_CASE("LpNormalization of zeros gives zeros") {
  for (const std::int64_t p : {1, 2}) {
    onnx::ModelProto model = EmptyModel();
    onnx::GraphProto* graph = model.mutable_graph();
    SetValue(graph->add_input(), "x", {2, 2});
    SetValue(graph->add_output(), "y", {2, 2});
    // 0, 1, 2, 3 becomes 0, 0, 2, 3.
    AddFloats(graph, "one", {}, {1});
    AddNode(graph, "Equal", {"x", "one"}, "is_one");
    AddFloats(graph, "zero", {}, {0});
    AddNode(graph, "Where", {"is_one", "zero", "x"}, "values");
    onnx::NodeProto* node = AddNode(graph, "LpNormalization", {"values"}, "y");
    AddInt(node, "p", p);
    AddInt(node, "axis", 1);
    Outcome outcome = CompileProto(model);
    REQUIRE(outcome.message.empty());
    const Answer answer = RunOnCounts(std::move(outcome.compiled.module), {2, 2});
    REQUIRE(answer.error.empty());
    const float norm = p == 1 ? 5.0F : 3.6055512755F;
    CHECK(answer.values[0] == 0);
    CHECK(answer.values[1] == 0);
    CHECK(answer.values[2] == Approx(2 / norm));
    CHECK(answer.values[3] == Approx(3 / norm));
  }
}

TEST_CASE("BatchNormalization of elements without an axis of channels takes them for one channel") {
  for (const Dim& size : {Dim(std::int64_t{4}), Dim("N")}) {
    onnx::ModelProto model = EmptyModel(14);
    onnx::GraphProto* graph = model.mutable_graph();
    SetValue(graph->add_input(), "x", {size});
    SetValue(graph->add_output(), "y", {size});
    for (const auto& [name, value] :
         {std::pair("scale", 3.0F), {"bias", 1.0F}, {"mean", 2.0F}, {"variance", 4.0F}})
      AddFloats(graph, name, {1}, {value});
    AddNode(graph, "BatchNormalization", {"x", "scale", "bias", "mean", "variance"}, "y");
    Outcome outcome = CompileProto(model);
    REQUIRE(outcome.message.empty());
    const Answer answer = RunOnCounts(std::move(outcome.compiled.module), {4});
    REQUIRE(answer.error.empty());
    for (std::size_t i = 0; i < 4; ++i)
      CHECK(answer.values[i] == Approx((static_cast<double>(i) - 2) / 2 * 3 + 1).epsilon(1e-4));
  }
}

TEST_CASE(
    "EmbedLayerNormalization counts the words that a mask lets through, whatever mask_index_type says") {
  const int type = GENERATE(0, 1);
  OneOutput model(17, {2, 3});
  onnx::OperatorSetIdProto* set = model.model()->add_opset_import();
  set->set_domain("com.microsoft");
  set->set_version(1);
  onnx::GraphProto* graph = model.graph();
  AddInt(AddNode(graph, "Mod", {"x", "three"}, "rest"), "fmod", 1);
  AddFloats(graph, "three", {}, {3});
  AddInt(AddNode(graph, "Cast", {"rest"}, "words"), "to", onnx::TensorProto::INT32);
  AddFloats(graph, "table", {3, 2}, {0, 1, 2, 3, 4, 5});
  AddFloats(graph, "gamma", {2}, {1, 1});
  AddFloats(graph, "beta", {2}, {0, 0});
  onnx::TensorProto* mask = AddWeight(graph, "mask", onnx::TensorProto::INT32, {2, 3});
  for (const int each : {1, 0, 1, 1, 1, 1}) mask->add_int32_data(each);
  onnx::NodeProto* node = AddNode(graph, "EmbedLayerNormalization",
                                  {"words", "", "table", "table", "", "gamma", "beta", "mask"}, "sum");
  node->set_domain("com.microsoft");
  node->add_output("counts");
  AddInt(node, "mask_index_type", type);
  AddInt(AddNode(graph, "Cast", {"counts"}, "y"), "to", onnx::TensorProto::FLOAT);
  model.Expect({2, 3}, {2}, {2, 3});
}

}  // namespace
}  // namespace rewire::test
