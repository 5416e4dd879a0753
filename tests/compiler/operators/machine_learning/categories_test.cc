// SPDX-License-Identifier: Apache-2.0
// LabelEncoder with keys that are NaN, and OneHotEncoder with and without categories that are not known. What
// is expected is what ONNX Runtime 1.31 gives.
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "rewire/tests/compiler/model_builder.h"

namespace rewire::test {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

class Encoder {
 public:
  Encoder(const std::string& type, const std::vector<Dim>& dims) : model_(EmptyModel(17)) {
    onnx::OperatorSetIdProto* domain = model_.add_opset_import();
    domain->set_domain("ai.onnx.ml");
    domain->set_version(4);
    onnx::GraphProto* graph = model_.mutable_graph();
    SetValue(graph->add_input(), "x", dims);
    node_ = AddNode(graph, type, {"x"}, "y");
    node_->set_domain("ai.onnx.ml");
    SetValue(graph->add_output(), "y", {});
    graph->mutable_output(0)->mutable_type()->mutable_tensor_type()->clear_shape();
  }
  onnx::NodeProto* node() { return node_; }
  void AddFloatList(const std::string& name, const std::vector<float>& values) {
    onnx::AttributeProto* attribute = node_->add_attribute();
    attribute->set_name(name);
    attribute->set_type(onnx::AttributeProto::FLOATS);
    for (const float value : values) attribute->add_floats(value);
  }
  Answer Run(std::vector<float> x) {
    const Outcome outcome = CompileProto(model_);
    INFO(outcome.message << (outcome.unsupported.empty() ? "" : ": " + outcome.unsupported[0].reason));
    REQUIRE(outcome.message.empty());
    const Shape shape = {static_cast<std::int64_t>(x.size())};
    return RunOn(outcome.compiled.module, {{"x", TensorView(x.data(), kFloat32, shape)}});
  }

 private:
  onnx::ModelProto model_;
  onnx::NodeProto* node_ = nullptr;
};

TEST_CASE("a key that is NaN stands for every NaN") {
  Encoder encoder("LabelEncoder", {"N"});
  const auto expect = [&](const std::vector<float>& keys, const std::vector<float>& x,
                          const std::vector<float>& y) {
    std::vector<float> values;
    for (std::size_t i = 0; i < keys.size(); ++i) values.push_back(static_cast<float>(10 * (i + 1)));
    encoder.AddFloatList("keys_floats", keys);
    encoder.AddFloatList("values_floats", values);
    onnx::AttributeProto* fallback = encoder.node()->add_attribute();
    fallback->set_name("default_float");
    fallback->set_type(onnx::AttributeProto::FLOAT);
    fallback->set_f(-7);
    const Answer answer = encoder.Run(x);
    CHECK(answer.error.empty());
    CHECK(answer.values == y);
  };
  SECTION("among numbers") { expect({1, kNan, 2}, {2, kNan, 5, 1, -kNan}, {30, 20, -7, 10, 20}); }
  SECTION("alone") { expect({kNan}, {1, kNan}, {-7, 10}); }
  SECTION("twice: the first counts") { expect({kNan, 1, kNan}, {kNan, 1, 3}, {10, 20, -7}); }
  SECTION("not at all") { expect({1, 2}, {kNan, 2}, {-7, 20}); }
}

TEST_CASE("an unknown category is a row of zeros, or fails the run") {
  Encoder encoder("OneHotEncoder", {"N"});
  const bool zeros = GENERATE(true, false);
  AddInt(encoder.node(), "zeros", zeros ? 1 : 0);
  SECTION("of categories that are there once") {
    AddIntList(encoder.node(), "cats_int64s", {3, 1, 2});
    CHECK(encoder.Run({1, 3}).values == std::vector<float>{0, 1, 0, 1, 0, 0});
    const Answer unknown = encoder.Run({1, 9});
    if (zeros) {
      CHECK(unknown.values == std::vector<float>{0, 1, 0, 0, 0, 0});
    } else {
      CHECK_THAT(unknown.error, Catch::Contains("[OneHotEncoder 'y']"));
    }
  }
  SECTION("of a category that is there twice: the last place counts") {
    AddIntList(encoder.node(), "cats_int64s", {3, 1, 3});
    CHECK(encoder.Run({1, 3}).values == std::vector<float>{0, 1, 0, 0, 0, 1});
  }
}

}  // namespace
}  // namespace rewire::test
