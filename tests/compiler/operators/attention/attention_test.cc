// SPDX-License-Identifier: Apache-2.0
// Attention of any length, the operators of com.microsoft beside ONNX's own, and what they refuse.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <string>
#include <vector>

#include "rewire/tests/compiler/model_builder.h"

namespace rewire::test {
namespace {

void AddFloat(onnx::NodeProto* node, const std::string& name, float value) {
  onnx::AttributeProto* attribute = node->add_attribute();
  attribute->set_name(name);
  attribute->set_type(onnx::AttributeProto::FLOAT);
  attribute->set_f(value);
}

// A model of one node that reads "x" and has one output "y".
class OneAttention {
 public:
  OneAttention(std::int64_t opset, const std::string& type, const std::vector<std::string>& inputs,
               const std::vector<Dim>& dims, const std::string& domain = "")
      : model_(EmptyModel(opset)) {
    onnx::OperatorSetIdProto* microsoft = model_.add_opset_import();
    microsoft->set_domain("com.microsoft");
    microsoft->set_version(1);
    SetValue(graph()->add_input(), "x", dims);
    node = AddNode(graph(), type, inputs, "y");
    node->set_domain(domain);
    SetValue(graph()->add_output(), "y", {});
    graph()->mutable_output(0)->mutable_type()->mutable_tensor_type()->clear_shape();
  }
  onnx::GraphProto* graph() { return model_.mutable_graph(); }
  Answer Run(const Shape& shape) {
    const Outcome outcome = CompileProto(model_);
    INFO(outcome.message << (outcome.unsupported.empty() ? "" : ": " + outcome.unsupported[0].reason));
    REQUIRE(outcome.message.empty());
    return RunOnCounts(outcome.compiled.module, shape);
  }
  std::string Reason() {
    const Outcome outcome = CompileProto(model_);
    return outcome.unsupported.size() == 1 ? outcome.unsupported[0].reason : "message: " + outcome.message;
  }

  onnx::NodeProto* node;

 private:
  onnx::ModelProto model_;
};

// Each token of x [batch, length, heads * size] attends to itself and to those before it, of which `left` may
// be seen.
std::vector<float> CausalAttention(const Shape& shape, int heads, double scale, std::int64_t left) {
  const std::int64_t length = shape[1], size = shape[2] / heads;
  std::vector<float> y(static_cast<std::size_t>(shape[0] * length * shape[2]));
  for (std::int64_t b = 0; b < shape[0]; ++b) {
    for (std::int64_t h = 0; h < heads; ++h) {
      const auto x = [&](std::int64_t i, std::int64_t d) {
        return static_cast<double>((b * length + i) * shape[2] + h * size + d);
      };
      for (std::int64_t i = 0; i < length; ++i) {
        std::vector<double> scores;
        const std::int64_t first = std::max<std::int64_t>(0, i - left);
        for (std::int64_t j = first; j <= i; ++j) {
          double score = 0;
          for (std::int64_t d = 0; d < size; ++d) score += scale * x(i, d) * x(j, d);
          scores.push_back(score);
        }
        const double highest = *std::max_element(scores.begin(), scores.end());
        double sum = 0;
        for (double& score : scores) sum += score = std::exp(score - highest);
        for (std::int64_t d = 0; d < size; ++d) {
          double value = 0;
          for (std::int64_t j = first; j <= i; ++j)
            value += scores[static_cast<std::size_t>(j - first)] / sum * x(j, d);
          y[static_cast<std::size_t>((b * length + i) * shape[2] + h * size + d)] = static_cast<float>(value);
        }
      }
    }
  }
  return y;
}

void CheckValues(const Answer& answer, const std::vector<float>& expected) {
  REQUIRE(answer.error.empty());
  REQUIRE(answer.values.size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    INFO("element " << i);
    CHECK(answer.values[i] == Approx(expected[i]).epsilon(1e-4));
  }
}

TEST_CASE("attention takes any batch and length") {
  const bool microsoft = GENERATE(false, true);
  OneAttention model(25, microsoft ? "MultiHeadAttention" : "Attention", {"x", "x", "x"}, {"N", "L", 6},
                     microsoft ? "com.microsoft" : "");
  AddFloat(model.node, "scale", 0.01F);
  if (microsoft) {
    AddInt(model.node, "num_heads", 2);
    AddInt(model.node, "unidirectional", 1);
  } else {
    AddInt(model.node, "q_num_heads", 2);
    AddInt(model.node, "kv_num_heads", 2);
    AddInt(model.node, "is_causal", 1);
  }
  for (const Shape& shape : {Shape{2, 3, 6}, Shape{1, 5, 6}, Shape{3, 1, 6}})
    CheckValues(model.Run(shape), CausalAttention(shape, 2, 0.01, shape[1]));
  if (microsoft) return;
  AddInt(model.node, "left_window_size", 1);
  CheckValues(model.Run({1, 5, 6}), CausalAttention({1, 5, 6}, 2, 0.01, 1));
}

TEST_CASE("attention refuses what does not fit") {
  const std::vector<Dim> four = {1, 3, 4, 2};
  SECTION("heads that do not divide") {
    OneAttention model(23, "Attention", {"x", "k", "k"}, four);
    AddFloats(model.graph(), "k", {1, 2, 1, 2}, {1, 2, 3, 4});
    CHECK(model.Reason() == "3 heads of queries, expected a multiple of the 2 heads of keys");
  }
  SECTION("sizes that differ") {
    OneAttention model(23, "Attention", {"x", "k", "k"}, four);
    AddFloats(model.graph(), "k", {1, 3, 1, 1}, {1, 2, 3});
    CHECK(model.Reason() == "queries [1, 3, 4, 2] do not fit keys [1, 3, 1, 1] and values [1, 3, 1, 1]");
  }
  SECTION("half a cache") {
    OneAttention model(23, "Attention", {"x", "x", "x", "", "x"}, four);
    CHECK(model.Reason() == "it has one of past_key and past_value, expected both or none");
  }
  SECTION("no heads") {
    OneAttention model(23, "Attention", {"x", "x", "x"}, {1, 4, 6});
    CHECK(model.Reason() == "'x' has shape [1, 4, 6], which 0 heads do not divide");
  }
  SECTION("packed queries, keys and values") {
    OneAttention model(23, "MultiHeadAttention", {"x"}, {1, 4, 2, 3, 8}, "com.microsoft");
    AddInt(model.node, "num_heads", 2);
    CHECK(model.Reason() == "keys and values packed with queries or with each other");
  }
  SECTION("an operator of another domain") {
    OneAttention model(23, "NoSuchAttention", {"x"}, four, "com.microsoft");
    CHECK(model.Reason() ==
          "the operator is not known; docs/operators.md lists those that are, docs/own-operators.md says how "
          "to add one");
  }
  SECTION("an activation that nobody knows") {
    OneAttention model(23, "FusedConv", {"x", "w"}, four, "com.microsoft");
    AddFloats(model.graph(), "w", {1, 3, 1, 1}, {1, 2, 3});
    AddString(model.node, "activation", "Softplus");
    CHECK(model.Reason() == "activation 'Softplus'");
  }
}

TEST_CASE("fused operators compute what they were fused of") {
  SECTION("a transposed product with a factor") {
    OneAttention model(17, "FusedMatMul", {"x", "x"}, {"N", 2}, "com.microsoft");
    AddInt(model.node, "transA", 1);
    AddFloat(model.node, "alpha", 0.5F);
    CheckValues(model.Run({3, 2}), {10, 13, 13, 17.5F});
  }
  SECTION("a product with constant weights and a factor") {
    const float factor = GENERATE(-2.0F, 0.75F);
    OneAttention model(17, "FusedMatMul", {"x", "w"}, {"N", 2}, "com.microsoft");
    AddFloats(model.graph(), "w", {2, 2}, {1, 0, 2, 1});
    AddInt(model.node, "transB", 1);
    AddFloat(model.node, "alpha", factor);
    CheckValues(model.Run({2, 2}), {0, factor, 2 * factor, 7 * factor});
  }
  SECTION("a convolution with a bias, a sum and an activation") {
    OneAttention model(17, "FusedConv", {"x", "w", "b", "z"}, {1, 1, 2, 2}, "com.microsoft");
    AddFloats(model.graph(), "w", {1, 1, 1, 1}, {2});
    AddFloats(model.graph(), "b", {1}, {-1});
    AddFloats(model.graph(), "z", {1, 1, 2, 2}, {0, 0, -9, 1});
    AddString(model.node, "activation", "Relu");
    CheckValues(model.Run({1, 1, 2, 2}), {0, 1, 0, 6});
  }
}

}  // namespace
}  // namespace rewire::test
