// SPDX-License-Identifier: Apache-2.0
// Support vector machines of ai.onnx.ml: results that can be worked out by hand, and what is refused. Models
// of scikit-learn are compared with ONNX Runtime in tests/models.
#include <catch2/catch.hpp>
#include <cmath>
#include <string>
#include <vector>

#include "rewire/tests/compiler/model_builder.h"
#include "rewire/tests/compiler/operators/machine_learning/open_features.h"

namespace rewire::test {
namespace {

void AddNumbers(onnx::NodeProto* node, const std::string& name, const std::vector<float>& values) {
  onnx::AttributeProto* attribute = node->add_attribute();
  attribute->set_name(name);
  attribute->set_type(onnx::AttributeProto::FLOATS);
  for (const float value : values) attribute->add_floats(value);
}

// A model of one node from "x" [N, 2], with one of the node's outputs.
onnx::ModelProto MachineModel(const std::string& type, int output, onnx::NodeProto** node) {
  onnx::ModelProto model = EmptyModel(17);
  onnx::OperatorSetIdProto* domain = model.add_opset_import();
  domain->set_domain("ai.onnx.ml");
  domain->set_version(1);
  onnx::GraphProto* graph = model.mutable_graph();
  SetValue(graph->add_input(), "x", {"N", 2});
  *node = AddNode(graph, type, {"x"}, "first");
  (*node)->set_domain("ai.onnx.ml");
  if (type == "SVMClassifier") (*node)->add_output("second");
  onnx::NodeProto* cast = AddNode(graph, "Cast", {output == 0 ? "first" : "second"}, "y");
  AddInt(cast, "to", onnx::TensorProto::FLOAT);
  SetValue(graph->add_output(), "y", {"N", 1});
  return model;
}

// The results for the rows (0, 1), (2, 3), (4, 5).
void CheckMachine(const onnx::ModelProto& model, const std::vector<double>& expected) {
  // The vectors say how many features there are if the model does not.
  for (const onnx::ModelProto& each : {model, WithOpenFeatures(model)}) {
    const Outcome outcome = CompileProto(each);
    for (const compiler::Unsupported& node : outcome.unsupported) UNSCOPED_INFO(node.reason);
    REQUIRE(outcome.message.empty());
    const Answer answer = RunOnCounts(outcome.compiled.module, {3, 2});
    REQUIRE(answer.values.size() == expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i)
      CHECK(static_cast<double>(answer.values[i]) == Approx(expected[i]).margin(1e-6));
  }
}

TEST_CASE("kernel functions of support vectors") {
  onnx::NodeProto* node = nullptr;
  const onnx::ModelProto empty = MachineModel("SVMRegressor", 0, &node);
  const float gamma = 0.25F, offset = 0.5F, degree = 2;
  // 3 k(x, (1, 0)) - 2 k(x, (0, 1)) + 7.
  AddNumbers(node, "support_vectors", {1, 0, 0, 1});
  AddNumbers(node, "coefficients", {3, -2});
  AddInt(node, "n_supports", 2);
  AddNumbers(node, "rho", {7});
  AddNumbers(node, "kernel_params", {gamma, offset, degree});
  onnx::ModelProto model = EmptyModel(17);
  std::string kind;
  std::vector<double> expected;
  const auto sum = [&](const auto& kernel) {
    for (const double x : {0.0, 2.0, 4.0})
      expected.push_back(3 * kernel(x, x + 1, 1, 0) - 2 * kernel(x, x + 1, 0, 1) + 7);
  };
  const auto dot = [](double a, double b, double c, double d) { return a * c + b * d; };
  SECTION("linear") {
    kind = "LINEAR";
    sum(dot);
  }
  SECTION("polynomial") {
    kind = "POLY";
    sum([&](double a, double b, double c, double d) { return std::pow(0.25 * dot(a, b, c, d) + 0.5, 2); });
  }
  SECTION("radial") {
    kind = "RBF";
    sum([&](double a, double b, double c, double d) {
      return std::exp(-0.25 * ((a - c) * (a - c) + (b - d) * (b - d)));
    });
  }
  SECTION("sigmoid") {
    kind = "SIGMOID";
    sum([&](double a, double b, double c, double d) { return std::tanh(0.25 * dot(a, b, c, d) + 0.5); });
  }
  AddString(node, "kernel_type", kind);
  model = MachineModel("SVMRegressor", 0, &node);
  *node = empty.graph().node(0);
  CheckMachine(model, expected);
}

TEST_CASE("one class, and a machine without support vectors") {
  onnx::NodeProto* node = nullptr;
  const onnx::ModelProto model = MachineModel("SVMRegressor", 0, &node);
  AddNumbers(node, "coefficients", {1, 1});
  AddNumbers(node, "rho", {-5});
  SECTION("the line itself") { CheckMachine(model, {-4, 0, 4}); }
  SECTION("inside or not; the border is outside") {
    AddInt(node, "one_class", 1);
    CheckMachine(model, {-1, -1, 1});
  }
}

// Three classes with one support vector each; the pairs' scores are linear.
void AddClasses(onnx::NodeProto* node) {
  AddIntList(node, "classlabels_ints", {4, 5, 6});
  AddIntList(node, "vectors_per_class", {1, 1, 1});
  AddNumbers(node, "support_vectors", {1, 0, 0, 1, 1, 1});
  // Class 0 against 1 and 2 has coefficients 1 and 2; 1 has -1 against 0 and 3 against 2; 2 has -2 and -3.
  AddNumbers(node, "coefficients", {1, -1, -2, 2, 3, -3});
  AddNumbers(node, "rho", {1.5F, 4, 7});
  AddNumbers(node, "kernel_params", {1, 0, 1});
}

TEST_CASE("classes by the votes of pairs") {
  onnx::NodeProto* node = nullptr;
  SECTION("labels") {
    const onnx::ModelProto model = MachineModel("SVMClassifier", 0, &node);
    AddClasses(node);
    // The scores below are above 0 for (0 of 1), (0 of 2) and (1 of 2) at first; then 2 wins.
    CheckMachine(model, {4, 4, 6});
  }
  SECTION("scores") {
    const onnx::ModelProto model = MachineModel("SVMClassifier", 1, &node);
    AddClasses(node);
    // x0 - x1 + 1.5, 2 x0 - 2 (x0 + x1) + 4, 3 x1 - 3 (x0 + x1) + 7.
    CheckMachine(model, {0.5, 2, 7, 0.5, -2, 1, 0.5, -6, -5});
  }
}

TEST_CASE("two classes have the score and its opposite") {
  onnx::NodeProto* node = nullptr;
  const onnx::ModelProto model = MachineModel("SVMClassifier", 1, &node);
  AddIntList(node, "classlabels_ints", {0, 1});
  AddIntList(node, "vectors_per_class", {1, 1});
  AddNumbers(node, "support_vectors", {1, 0, 0, 1});
  AddNumbers(node, "coefficients", {2, -1});
  AddNumbers(node, "rho", {1});
  CheckMachine(model, {0, 0, -2, 2, -4, 4});
}

TEST_CASE("machines whose numbers do not fit are refused") {
  onnx::NodeProto* node = nullptr;
  onnx::ModelProto model = MachineModel("SVMClassifier", 0, &node);
  std::string reason;
  SECTION("rho") {
    AddClasses(node);
    node->mutable_attribute(4)->clear_floats();
    reason = "rho, prob_a and prob_b have 0, 0 and 0 numbers for 3 pairs of classes";
  }
  SECTION("coefficients") {
    AddClasses(node);
    node->mutable_attribute(3)->add_floats(1);
    reason = "7 coefficients for 3 vectors of 3 classes";
  }
  SECTION("vectors") {
    AddClasses(node);
    node->mutable_attribute(2)->add_floats(1);
    reason = "3 vectors of 2 features have 7 numbers";
  }
  SECTION("classes") {
    AddClasses(node);
    node->mutable_attribute(0)->add_ints(1);
    reason = "4 labels with vectors_per_class of 3";
  }
  SECTION("a kernel function that nobody knows") {
    AddClasses(node);
    AddString(node, "kernel_type", "CUBE");
    reason = "kernel_type is 'CUBE', expected LINEAR, POLY, RBF or SIGMOID";
  }
  SECTION("two classes without support vectors") {
    AddIntList(node, "classlabels_ints", {0, 1});
    AddNumbers(node, "coefficients", {1, 2, 3, 4});
    AddNumbers(node, "rho", {1});
    reason = "two classes without support vectors";
  }
  const Outcome outcome = CompileProto(model);
  REQUIRE(outcome.unsupported.size() == 1);
  CHECK(outcome.unsupported[0].reason == reason);
}

}  // namespace
}  // namespace rewire::test
