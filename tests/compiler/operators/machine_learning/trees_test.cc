// SPDX-License-Identifier: Apache-2.0
// Trees of ai.onnx.ml in their forms, and what is refused. Models of scikit-learn are compared with ONNX
// Runtime in tests/models.
#include <catch2/catch.hpp>
#include <limits>
#include <string>
#include <vector>

#include "rewire/tests/compiler/model_builder.h"
#include "rewire/tests/compiler/operators/machine_learning/open_features.h"

namespace rewire::test {
namespace {

void AddFloatValues(onnx::NodeProto* node, const std::string& name, const std::vector<float>& values) {
  onnx::AttributeProto* attribute = node->add_attribute();
  attribute->set_name(name);
  attribute->set_type(onnx::AttributeProto::FLOATS);
  for (const float value : values) attribute->add_floats(value);
}

void AddStringValues(onnx::NodeProto* node, const std::string& name, const std::vector<std::string>& values) {
  onnx::AttributeProto* attribute = node->add_attribute();
  attribute->set_name(name);
  attribute->set_type(onnx::AttributeProto::STRINGS);
  for (const std::string& value : values) attribute->add_strings(value);
}

// A model of one node from "x" [N, 2] to `outputs`.
onnx::ModelProto TreeModel(const std::string& type, const std::vector<std::string>& outputs,
                           onnx::NodeProto** node) {
  onnx::ModelProto model = EmptyModel(17);
  onnx::OperatorSetIdProto* domain = model.add_opset_import();
  domain->set_domain("ai.onnx.ml");
  domain->set_version(type == "TreeEnsemble" ? 5 : 3);
  onnx::GraphProto* graph = model.mutable_graph();
  SetValue(graph->add_input(), "x", {"N", 2});
  *node = AddNode(graph, type, {"x"}, "label");
  (*node)->set_domain("ai.onnx.ml");
  (*node)->clear_output();
  for (const std::string& output : outputs) {
    (*node)->add_output(output);
    SetValue(graph->add_output(), output, {"N", 2});
  }
  return model;
}

// x[0] <= 2 leads to leaf 1; else x[1] > 5 leads to leaf 3, else to leaf 4. The nodes are listed in another
// order, the root last.
void AddTree(onnx::NodeProto* node) {
  AddIntList(node, "nodes_treeids", {7, 7, 7, 7, 7});
  AddIntList(node, "nodes_nodeids", {4, 3, 2, 1, 0});
  AddIntList(node, "nodes_featureids", {0, 0, 1, 0, 0});
  AddFloatValues(node, "nodes_values", {0, 0, 5, 0, 2});
  AddStringValues(node, "nodes_modes", {"LEAF", "LEAF", "BRANCH_GT", "LEAF", "BRANCH_LEQ"});
  AddIntList(node, "nodes_truenodeids", {0, 0, 3, 0, 1});
  AddIntList(node, "nodes_falsenodeids", {0, 0, 4, 0, 2});
}

void AddWeights(onnx::NodeProto* node, const std::string& prefix, const std::vector<std::int64_t>& leaves,
                const std::vector<std::int64_t>& ids, const std::vector<float>& weights) {
  AddIntList(node, prefix + "_treeids", std::vector<std::int64_t>(leaves.size(), 7));
  AddIntList(node, prefix + "_nodeids", leaves);
  AddIntList(node, prefix + "_ids", ids);
  AddFloatValues(node, prefix + "_weights", weights);
}

std::vector<float> ValuesOf(const onnx::ModelProto& model) {
  std::vector<std::vector<float>> values;
  // A model need not say how many features there are, and its attributes are read where nothing is folded,
  // too.
  compiler::CompileOptions unfolded;
  unfolded.disabled_passes = {"fold-constants"};
  for (const onnx::ModelProto& each : {model, WithOpenFeatures(model)}) {
    for (const compiler::CompileOptions& options : {compiler::CompileOptions(), unfolded}) {
      const Outcome outcome = CompileProto(each, options);
      INFO(outcome.message);
      for (const compiler::Unsupported& node : outcome.unsupported) UNSCOPED_INFO(node.reason);
      REQUIRE(outcome.message.empty());
      // The rows are (0, 1), (2, 3), (4, 5), (6, 7).
      values.push_back(RunOnCounts(outcome.compiled.module, {4, 2}).values);
      CHECK(values.back() == values.front());
    }
  }
  return values.front();
}

std::string RefusalOf(const onnx::ModelProto& model) {
  const Outcome outcome = CompileProto(model);
  return outcome.unsupported.size() == 1 ? outcome.unsupported[0].reason : "message: " + outcome.message;
}

TEST_CASE("trees for regression") {
  onnx::NodeProto* node = nullptr;
  onnx::ModelProto model = TreeModel("TreeEnsembleRegressor", {"y"}, &node);
  AddTree(node);
  SECTION("one target") {
    AddWeights(node, "target", {1, 3, 4}, {0, 0, 0}, {10, 20, 30});
    CHECK(ValuesOf(model) == std::vector<float>{10, 10, 30, 20});
  }
  SECTION("two targets and their bases") {
    AddInt(node, "n_targets", 2);
    AddFloatValues(node, "base_values", {100, 200});
    AddWeights(node, "target", {1, 3, 4, 4}, {0, 1, 0, 1}, {10, 20, 30, 40});
    CHECK(ValuesOf(model) == std::vector<float>{110, 200, 110, 200, 130, 240, 100, 220});
  }
  SECTION("a transform of one target") {
    AddWeights(node, "target", {1, 3, 4}, {0, 0, 0}, {10, 20, 30});
    AddString(node, "post_transform", "LOGISTIC");
    CHECK(RefusalOf(model) == "post_transform 'LOGISTIC' of one target");
  }
  SECTION("a target that is not there") {
    AddWeights(node, "target", {1}, {1}, {10});
    CHECK(RefusalOf(model) == "a weight is for number 1 of 1");
  }
  SECTION("a weight of a branch") {
    AddWeights(node, "target", {2}, {0}, {10});
    CHECK(RefusalOf(model) == "node 2 of tree 7 has a weight and is no leaf");
  }
  SECTION("too few bases") {
    AddInt(node, "n_targets", 2);
    AddFloatValues(node, "base_values", {1});
    AddWeights(node, "target", {1}, {0}, {10});
    CHECK(RefusalOf(model) == "1 base_values for 2 targets");
  }
}

TEST_CASE("trees that are none are refused") {
  onnx::NodeProto* node = nullptr;
  onnx::ModelProto model = TreeModel("TreeEnsembleRegressor", {"y"}, &node);
  const auto add = [&](const std::vector<std::int64_t>& ids, std::int64_t feature, const std::string& mode,
                       const std::vector<std::int64_t>& when_false) {
    AddIntList(node, "nodes_treeids", {0, 0, 0});
    AddIntList(node, "nodes_nodeids", ids);
    AddIntList(node, "nodes_featureids", {feature, 0, 0});
    AddFloatValues(node, "nodes_values", {0, 0, 0});
    AddStringValues(node, "nodes_modes", {mode, "LEAF", "LEAF"});
    AddIntList(node, "nodes_truenodeids", {1, 0, 0});
    AddIntList(node, "nodes_falsenodeids", when_false);
  };
  SECTION("two nodes of one name") {
    add({0, 1, 1}, 0, "BRANCH_LEQ", {1, 0, 0});
    CHECK(RefusalOf(model) == "tree 0 has two nodes 1");
  }
  SECTION("a child that is not there") {
    add({0, 1, 2}, 0, "BRANCH_LEQ", {9, 0, 0});
    CHECK(RefusalOf(model) == "tree 0 has no node 9");
  }
  SECTION("no root") {
    add({0, 1, 2}, 0, "BRANCH_LEQ", {0, 0, 0});
    CHECK(RefusalOf(model) != "");
  }
  SECTION("two roots") {
    add({0, 1, 2}, 0, "BRANCH_LEQ", {1, 0, 0});
    CHECK(RefusalOf(model) == "tree 0 has two roots");
  }
  SECTION("a feature that X does not have") {
    add({0, 1, 2}, 2, "BRANCH_LEQ", {2, 0, 0});
    CHECK(RefusalOf(model) == "a node compares feature 2 of 2");
  }
  SECTION("a mode that nobody knows") {
    add({0, 1, 2}, 0, "BRANCH_MAYBE", {2, 0, 0});
    CHECK(RefusalOf(model) == "nodes_modes has 'BRANCH_MAYBE'");
  }
}

TEST_CASE("trees for classes") {
  onnx::NodeProto* node = nullptr;
  const bool scores = GENERATE(false, true);
  onnx::ModelProto model = TreeModel("TreeEnsembleClassifier", {"label", "score"}, &node);
  model.mutable_graph()->mutable_output()->DeleteSubrange(scores ? 0 : 1, 1);
  AddTree(node);
  SECTION("three classes") {
    AddIntList(node, "classlabels_int64s", {5, 6, 9});
    AddWeights(node, "class", {1, 1, 3, 3, 4, 4}, {0, 1, 1, 2, 0, 2}, {0.5F, 0.5F, 0.25F, 0.75F, 1, 0});
    const std::vector<float> labels = {5, 5, 5, 9};
    const std::vector<float> expected = {0.5F, 0.5F, 0, 0.5F, 0.5F, 0, 1, 0, 0, 0, 0.25F, 0.75F};
    if (scores) CHECK(ValuesOf(model) == expected);
    if (!scores) {
      AddNode(model.mutable_graph(), "Cast", {"label"}, "number");
      AddInt(model.mutable_graph()->mutable_node(1), "to", onnx::TensorProto::FLOAT);
      model.mutable_graph()->mutable_output(0)->set_name("number");
      CHECK(ValuesOf(model) == labels);
    }
  }
  SECTION("two classes with the probability of one") {
    AddIntList(node, "classlabels_int64s", {0, 1});
    AddWeights(node, "class", {1, 3, 4}, {0, 0, 0}, {0.5F, 0.75F, 0.25F});
    if (scores)
      CHECK(ValuesOf(model) == std::vector<float>{0.5F, 0.5F, 0.5F, 0.5F, 0.75F, 0.25F, 0.25F, 0.75F});
    if (!scores) {
      AddNode(model.mutable_graph(), "Cast", {"label"}, "number");
      AddInt(model.mutable_graph()->mutable_node(1), "to", onnx::TensorProto::FLOAT);
      model.mutable_graph()->mutable_output(0)->set_name("number");
      CHECK(ValuesOf(model) == std::vector<float>{0, 0, 0, 1});
    }
  }
  SECTION("two classes with weights for the second alone") {
    AddIntList(node, "classlabels_int64s", {0, 1});
    AddWeights(node, "class", {1}, {1}, {0.5F});
    CHECK(RefusalOf(model) == "all weights are for the second of two classes");
  }
  SECTION("softmax of two classes with one score") {
    AddIntList(node, "classlabels_int64s", {0, 1});
    AddWeights(node, "class", {1}, {0}, {0.5F});
    AddString(node, "post_transform", "SOFTMAX");
    CHECK(RefusalOf(model) == "post_transform 'SOFTMAX' of two classes with one score");
  }
}

// Attributes that are tensors.
template <typename T>
void AddTensorValue(onnx::NodeProto* node, const std::string& name, onnx::TensorProto::DataType type,
                    const std::vector<T>& values) {
  onnx::AttributeProto* attribute = node->add_attribute();
  attribute->set_name(name);
  attribute->set_type(onnx::AttributeProto::TENSOR);
  onnx::TensorProto* tensor = attribute->mutable_t();
  tensor->set_data_type(type);
  tensor->add_dims(static_cast<std::int64_t>(values.size()));
  tensor->set_raw_data(values.data(), values.size() * sizeof(T));
}

TEST_CASE("sets of members, and a tree of one leaf") {
  onnx::NodeProto* node = nullptr;
  onnx::ModelProto model = TreeModel("TreeEnsemble", {"y"}, &node);
  // Node 0: x[0] is 2 or 6; its false side is node 1: x[1] is nothing. Node 2 has the same leaf twice.
  AddInt(node, "n_targets", 1);
  AddIntList(node, "tree_roots", {0, 2});
  AddIntList(node, "nodes_featureids", {0, 1, 0});
  AddTensorValue<std::uint8_t>(node, "nodes_modes", onnx::TensorProto::UINT8, {6, 6, 0});
  AddTensorValue<float>(node, "nodes_splits", onnx::TensorProto::FLOAT, {0, 0, 0});
  AddIntList(node, "nodes_truenodeids", {0, 1, 3});
  AddIntList(node, "nodes_trueleafs", {1, 1, 1});
  AddIntList(node, "nodes_falsenodeids", {1, 2, 3});
  AddIntList(node, "nodes_falseleafs", {0, 1, 1});
  AddIntList(node, "leaf_targetids", {0, 0, 0, 0});
  AddTensorValue<float>(node, "leaf_weights", onnx::TensorProto::FLOAT, {1, 2, 3, 100});
  const float gap = std::numeric_limits<float>::quiet_NaN();
  AddTensorValue<float>(node, "membership_values", onnx::TensorProto::FLOAT, {2, 6, gap, gap});
  CHECK(ValuesOf(model) == std::vector<float>{103, 101, 103, 101});
}

}  // namespace
}  // namespace rewire::test
