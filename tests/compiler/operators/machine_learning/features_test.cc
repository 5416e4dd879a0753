// SPDX-License-Identifier: Apache-2.0
// Operators of ai.onnx.ml, and what they refuse.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "rewire/tests/compiler/model_builder.h"
#include "rewire/tests/compiler/operators/machine_learning/open_features.h"

namespace rewire::test {
namespace {

void AddFloatList(onnx::NodeProto* node, const std::string& name, const std::vector<float>& values) {
  onnx::AttributeProto* attribute = node->add_attribute();
  attribute->set_name(name);
  attribute->set_type(onnx::AttributeProto::FLOATS);
  for (const float value : values) attribute->add_floats(value);
}

// A model of one operator of the domain, from "x" [N, 3] to "y".
onnx::ModelProto OneNode(const std::string& type, onnx::NodeProto** node) {
  onnx::ModelProto model = EmptyModel(17);
  onnx::OperatorSetIdProto* domain = model.add_opset_import();
  domain->set_domain("ai.onnx.ml");
  domain->set_version(3);
  onnx::GraphProto* graph = model.mutable_graph();
  SetValue(graph->add_input(), "x", {"N", 3});
  *node = AddNode(graph, type, {"x"}, "y");
  (*node)->set_domain("ai.onnx.ml");
  SetValue(graph->add_output(), "y", {});
  graph->mutable_output(0)->mutable_type()->mutable_tensor_type()->clear_shape();
  return model;
}

TEST_CASE("features are scaled, normalized and combined") {
  onnx::NodeProto* node = nullptr;
  std::vector<float> expected;
  onnx::ModelProto model;
  bool is_told = false;  // the attributes say how many features there are, so that the model need not
  SECTION("Scaler") {
    model = OneNode("Scaler", &node);
    AddFloatList(node, "offset", {1});
    AddFloatList(node, "scale", {1, 2, 3});
    expected = {-1, 0, 3, 2, 6, 12};
  }
  SECTION("Normalizer") {
    model = OneNode("Normalizer", &node);
    AddString(node, "norm", "L1");
    expected = {0, 1.0F / 3, 2.0F / 3, 0.25F, 4.0F / 12, 5.0F / 12};
  }
  SECTION("LinearRegressor") {
    model = OneNode("LinearRegressor", &node);
    AddInt(node, "targets", 2);
    AddFloatList(node, "coefficients", {1, 1, 1, 0, 0, 2});
    AddFloatList(node, "intercepts", {10, 20});
    expected = {13, 24, 22, 30};
    is_told = true;
  }
  SECTION("FeatureVectorizer") {
    model = OneNode("FeatureVectorizer", &node);
    AddIntList(node, "inputdimensions", {3});
    expected = {0, 1, 2, 3, 4, 5};
    is_told = true;
  }
  SECTION("Imputer") {
    model = OneNode("Imputer", &node);
    AddFloatList(node, "imputed_value_floats", {7, 8, 9});
    expected = {7, 1, 2, 3, 4, 5};
  }
  for (const onnx::ModelProto& each : {model, is_told ? WithOpenFeatures(model) : model}) {
    const Outcome outcome = CompileProto(each);
    REQUIRE(outcome.message.empty());
    const Answer answer = RunOnCounts(outcome.compiled.module, {2, 3});
    REQUIRE(answer.values.size() == expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) CHECK(answer.values[i] == Approx(expected[i]));
  }
}

TEST_CASE("rows of another number of features than the coefficients' end a run") {
  onnx::NodeProto* node = nullptr;
  onnx::ModelProto model = OneNode("LinearRegressor", &node);
  AddFloatList(node, "coefficients", {1, 2, 3});
  const Outcome outcome = CompileProto(WithOpenFeatures(model));
  REQUIRE(outcome.message.empty());
  CHECK(RunOnCounts(outcome.compiled.module, {2, 3}).error.empty());
  CHECK(!RunOnCounts(outcome.compiled.module, {2, 4}).error.empty());
}

TEST_CASE("Binarizer compares integers and float64 without rounding them to float32") {
  const auto type = GENERATE(onnx::TensorProto::INT64, onnx::TensorProto::INT32, onnx::TensorProto::DOUBLE);
  onnx::NodeProto* node = nullptr;
  onnx::ModelProto model = OneNode("Binarizer", &node);
  onnx::GraphProto* graph = model.mutable_graph();
  graph->clear_node();
  AddInt(AddNode(graph, "Cast", {"x"}, "count"), "to", type);
  AddInts(graph, "integer", {1 << 24});  // float32 has no odd number beyond it
  AddInt(AddNode(graph, "Cast", {"integer"}, "large"), "to", type);
  AddNode(graph, "Add", {"count", "large"}, "sum");
  node = AddNode(graph, "Binarizer", {"sum"}, "binary");
  node->set_domain("ai.onnx.ml");
  onnx::AttributeProto* threshold = node->add_attribute();
  threshold->set_name("threshold");
  threshold->set_type(onnx::AttributeProto::FLOAT);
  threshold->set_f(1 << 24);
  AddInt(AddNode(graph, "Cast", {"binary"}, "y"), "to", onnx::TensorProto::FLOAT);
  const Outcome outcome = CompileProto(model);
  CHECK(outcome.message.empty());
  CHECK(RunOnCounts(outcome.compiled.module, {1, 3}).values == std::vector<float>{0, 1, 1});
}

TEST_CASE("what features do not fit is refused") {
  onnx::NodeProto* node = nullptr;
  onnx::ModelProto model;
  std::string reason;
  SECTION("numbers of features") {
    model = OneNode("Scaler", &node);
    AddFloatList(node, "offset", {1, 2});
    reason = "offset has 2 numbers for 3 features";
  }
  SECTION("numbers of coefficients") {
    model = OneNode("LinearRegressor", &node);
    AddFloatList(node, "coefficients", {1, 2, 3, 4});
    reason = "4 coefficients for 3 features";
  }
  SECTION("one row of coefficients for two labels, as it is") {
    model = OneNode("LinearClassifier", &node);
    AddFloatList(node, "coefficients", {1, 2, 3});
    AddIntList(node, "classlabels_ints", {0, 1});
    reason = "post_transform 'NONE' of two classes with one row of coefficients";
  }
  SECTION("a transform that nobody knows") {
    model = OneNode("LinearRegressor", &node);
    AddFloatList(node, "coefficients", {1, 2, 3});
    AddString(node, "post_transform", "CUBE");
    reason = "post_transform is 'CUBE', expected NONE, LOGISTIC, SOFTMAX, SOFTMAX_ZERO or PROBIT";
  }
  const Outcome outcome = CompileProto(model);
  REQUIRE(outcome.unsupported.size() == 1);
  CHECK(outcome.unsupported[0].reason == reason);
}

}  // namespace
}  // namespace rewire::test
