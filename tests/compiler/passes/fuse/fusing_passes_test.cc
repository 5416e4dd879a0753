// SPDX-License-Identifier: Apache-2.0
// Passes that put one kernel in the place of several: what they recognize, and what only looks like it.
#include <catch2/catch.hpp>
#include <cmath>

#include "rewire/tests/compiler/single_pass.h"

namespace rewire::test {
namespace {

void AddScalar(onnx::GraphProto* graph, const std::string& name, float value) {
  AddFloats(graph, name, {}, {value});
}

// x / d, erf, + one, times x, times half.
onnx::ModelProto Gelu(float d, float one, float half) {
  onnx::ModelProto model = ModelOf({2, 3});
  onnx::GraphProto* graph = model.mutable_graph();
  AddScalar(graph, "d", d);
  AddScalar(graph, "one", one);
  AddScalar(graph, "half", half);
  AddNode(graph, "Div", {"x", "d"}, "scaled");
  AddNode(graph, "Erf", {"scaled"}, "erf");
  AddNode(graph, "Add", {"erf", "one"}, "gate");
  AddNode(graph, "Mul", {"x", "gate"}, "product");
  AddNode(graph, "Mul", {"product", "half"}, "y");
  return model;
}
const float kRoot = std::sqrt(2.0F);

TEST_CASE("fuse-gelu: x (1 + erf(x / sqrt 2)) / 2") {
  CHECK(RunPass("fuse-gelu", Gelu(kRoot, 1, 0.5F), {2, 3}).after ==
        Lines{"%1 = rewire.gelu(%0)", "output y = %1"});
}

TEST_CASE("fuse-gelu: the half before the product, and the gate on the left") {
  onnx::ModelProto model = ModelOf({2, 3});
  onnx::GraphProto* graph = model.mutable_graph();
  AddScalar(graph, "root", kRoot);
  AddScalar(graph, "one", 1);
  AddScalar(graph, "two", 2);
  AddNode(graph, "Div", {"x", "root"}, "scaled");
  AddNode(graph, "Erf", {"scaled"}, "erf");
  AddNode(graph, "Add", {"one", "erf"}, "gate");
  AddNode(graph, "Div", {"x", "two"}, "halved");
  AddNode(graph, "Mul", {"gate", "halved"}, "y");
  CHECK(RunPass("fuse-gelu", model, {2, 3}).after == Lines{"%1 = rewire.gelu(%0)", "output y = %1"});
}

// x (1 + tanh(c (x + k x^3))) / 2, with the cube as a power or as products.
onnx::ModelProto TanhGelu(float c, float k, bool power) {
  onnx::ModelProto model = ModelOf({2, 3});
  onnx::GraphProto* graph = model.mutable_graph();
  const auto scalar = [&](const char* name, float value) { AddFloats(graph, name, {}, {value}); };
  scalar("c", c);
  scalar("k", k);
  scalar("one", 1);
  scalar("half", 0.5F);
  scalar("three", 3);
  if (power) {
    AddNode(graph, "Pow", {"x", "three"}, "cube");
    AddNode(graph, "Mul", {"cube", "k"}, "small");
  } else {
    AddNode(graph, "Mul", {"k", "x"}, "scaled");
    AddNode(graph, "Mul", {"x", "scaled"}, "square");
    AddNode(graph, "Mul", {"x", "square"}, "small");
  }
  AddNode(graph, "Add", {"x", "small"}, "sum");
  AddNode(graph, "Mul", {"sum", "c"}, "argument");
  AddNode(graph, "Tanh", {"argument"}, "tanh");
  AddNode(graph, "Add", {"tanh", "one"}, "gate");
  AddNode(graph, "Mul", {"gate", "half"}, "halved");
  AddNode(graph, "Mul", {"x", "halved"}, "y");
  return model;
}

TEST_CASE("fuse-gelu: the approximation by tanh") {
  for (bool power : {false, true}) {
    CHECK(RunPass("fuse-gelu", TanhGelu(0.7978846F, 0.044715F, power), {2, 3}).after ==
          Lines{"%1 = rewire.gelu {approximate=\"tanh\"}(%0)", "output y = %1"});
    CHECK_FALSE(RunPass("fuse-gelu", TanhGelu(0.8F, 0.044715F, power), {2, 3}).changes());
    CHECK_FALSE(RunPass("fuse-gelu", TanhGelu(0.7978846F, 0.05F, power), {2, 3}).changes());
  }
}

TEST_CASE("fuse-gelu: what only looks like it") {
  SECTION("another divisor") { CHECK_FALSE(RunPass("fuse-gelu", Gelu(1.5F, 1, 0.5F), {2, 3}).changes()); }
  SECTION("another term") { CHECK_FALSE(RunPass("fuse-gelu", Gelu(kRoot, 2, 0.5F), {2, 3}).changes()); }
  SECTION("another factor") { CHECK_FALSE(RunPass("fuse-gelu", Gelu(kRoot, 1, 1), {2, 3}).changes()); }
  SECTION("the gate of something else") {
    onnx::ModelProto model = Gelu(kRoot, 1, 0.5F);
    AddNode(model.mutable_graph(), "Neg", {"x"}, "other");
    // In front of what reads it.
    model.mutable_graph()->mutable_node()->SwapElements(3, 5);
    model.mutable_graph()->mutable_node()->SwapElements(4, 5);
    model.mutable_graph()->mutable_node(4)->set_input(0, "other");
    CHECK_FALSE(RunPass("fuse-gelu", model, {2, 3}).changes());
  }
  SECTION("a gate that something else reads too") {
    onnx::ModelProto model = Gelu(kRoot, 1, 0.5F);
    model.mutable_graph()->mutable_node(4)->set_output(0, "z");
    AddNode(model.mutable_graph(), "Add", {"z", "gate"}, "y");
    CHECK_FALSE(RunPass("fuse-gelu", model, {2, 3}).changes());
  }
}

// (x - mean x) / sqrt(mean of its square + epsilon) * scale + bias, over `axis`.
onnx::ModelProto LayerNorm(std::int64_t axis, const std::vector<float>& scale) {
  onnx::ModelProto model = ModelOf({2, 3});
  onnx::GraphProto* graph = model.mutable_graph();
  AddScalar(graph, "two", 2);
  AddScalar(graph, "epsilon", 0.5F);
  AddFloats(graph, "scale", {static_cast<std::int64_t>(scale.size())}, scale);
  AddFloats(graph, "bias", {3}, {3, 2, 1});
  const auto mean = [&](const char* of, const char* name) {
    AddIntList(AddNode(graph, "ReduceMean", {of}, name), "axes", {axis});
  };
  mean("x", "mean");
  AddNode(graph, "Sub", {"x", "mean"}, "d");
  AddNode(graph, "Pow", {"d", "two"}, "squares");
  mean("squares", "variance");
  AddNode(graph, "Add", {"variance", "epsilon"}, "sum");
  AddNode(graph, "Sqrt", {"sum"}, "root");
  AddNode(graph, "Div", {"d", "root"}, "normal");
  AddNode(graph, "Mul", {"normal", "scale"}, "scaled");
  AddNode(graph, "Add", {"scaled", "bias"}, "y");
  return model;
}

TEST_CASE("fuse-layer-norm: over the last axis, with a scale and a bias") {
  const Lines expected = {"%3 = rewire.layer_norm {axis=-1, epsilon=0.5}(%0, @1, @2)", "output y = %3"};
  CHECK(RunPass("fuse-layer-norm", LayerNorm(-1, {1, 2, 3}), {2, 3}).after == expected);
  CHECK(RunPass("fuse-layer-norm", LayerNorm(1, {1, 2, 3}), {2, 3}).after == expected);
}

TEST_CASE("fuse-layer-norm: the square as a product") {
  onnx::ModelProto model = LayerNorm(-1, {1, 2, 3});
  model.mutable_graph()->mutable_node(2)->set_op_type("Mul");
  model.mutable_graph()->mutable_node(2)->set_input(1, "d");
  CHECK(RunPass("fuse-layer-norm", model, {2, 3}).after.size() == 2);
}

TEST_CASE("fuse-layer-norm: what only looks like it") {
  SECTION("another axis") {
    CHECK_FALSE(RunPass("fuse-layer-norm", LayerNorm(0, {1, 2, 3}), {2, 3}).changes());
  }
  SECTION("one factor for all") {
    CHECK_FALSE(RunPass("fuse-layer-norm", LayerNorm(-1, {2}), {2, 3}).changes());
  }
  SECTION("a fourth power") {
    onnx::ModelProto model = LayerNorm(-1, {1, 2, 3});
    AddScalar(model.mutable_graph(), "four", 4);
    model.mutable_graph()->mutable_node(2)->set_input(1, "four");
    CHECK_FALSE(RunPass("fuse-layer-norm", model, {2, 3}).changes());
  }
  SECTION("the mean of something else") {
    onnx::ModelProto model = LayerNorm(-1, {1, 2, 3});
    model.mutable_graph()->mutable_node(6)->set_input(0, "x");  // x / root
    CHECK_FALSE(RunPass("fuse-layer-norm", model, {2, 3}).changes());
  }
}

// x * clip(x + three, 0, six) / divisor
onnx::ModelProto HardSwish(float three, float six, float divisor, bool x_again = true) {
  onnx::ModelProto model = ModelOf({2, 3});
  onnx::GraphProto* graph = model.mutable_graph();
  AddScalar(graph, "three", three);
  AddScalar(graph, "zero", 0);
  AddScalar(graph, "six", six);
  AddScalar(graph, "divisor", divisor);
  AddNode(graph, "Add", {"x", "three"}, "sum");
  AddNode(graph, "Clip", {"sum", "zero", "six"}, "clipped");
  AddNode(graph, "Mul", {x_again ? "x" : "sum", "clipped"}, "product");
  AddNode(graph, "Div", {"product", "divisor"}, "y");
  return model;
}

TEST_CASE("fuse-hard-swish: x clip(x + 3, 0, 6) / 6") {
  const Lines expected = {"%1 = rewire.hard_swish(%0)", "output y = %1"};
  CHECK(RunPass("fuse-hard-swish", HardSwish(3, 6, 6), {2, 3}).after == expected);
  onnx::ModelProto by_factor = HardSwish(3, 6, 1.0F / 6);
  by_factor.mutable_graph()->mutable_node(3)->set_op_type("Mul");
  CHECK(RunPass("fuse-hard-swish", by_factor, {2, 3}).after == expected);
}

TEST_CASE("fuse-hard-swish: what only looks like it") {
  CHECK_FALSE(RunPass("fuse-hard-swish", HardSwish(2, 6, 6), {2, 3}).changes());
  CHECK_FALSE(RunPass("fuse-hard-swish", HardSwish(3, 5, 6), {2, 3}).changes());
  CHECK_FALSE(RunPass("fuse-hard-swish", HardSwish(3, 6, 5), {2, 3}).changes());
  CHECK_FALSE(RunPass("fuse-hard-swish", HardSwish(3, 6, 6, false), {2, 3}).changes());
}

onnx::ModelProto Power(const std::vector<std::int64_t>& shape, float exponent) {
  onnx::ModelProto model = ModelOf({2, 3});
  AddFloats(model.mutable_graph(), "exponent", shape, {exponent});
  AddNode(model.mutable_graph(), "Pow", {"x", "exponent"}, "y");
  return model;
}

TEST_CASE("square: x to the power 2") {
  const Lines expected = {"%1 = rewire.mul(%0, %0)", "output y = %1"};
  CHECK(RunPass("square", Power({}, 2), {2, 3}).after == expected);
  CHECK(RunPass("square", Power({1, 1}, 2), {2, 3}).after == expected);
}

TEST_CASE("tiny-weights: subnormal weights become 0, beside something larger") {
  // Row i of x reads weight i alone, and makes it large enough to be seen.
  const auto run = [](float largest, bool pass) {
    onnx::ModelProto model = ModelOf({4, 4});
    onnx::GraphProto* graph = model.mutable_graph();
    AddFloats(graph, "w", {4, 1}, {largest, 0x1p-130F, -0x1.fffffcp-127F, 0x1p-126F});
    std::vector<float> rows(16);
    for (std::size_t i = 0; i < 4; ++i) rows[5 * i] = i == 0 ? 1.0F : 0x1p100F;
    AddFloats(graph, "rows", {4, 4}, rows);
    AddScalar(graph, "none", 0);
    AddScalar(graph, "one", 1);
    AddNode(graph, "Mul", {"x", "none"}, "nothing");
    AddNode(graph, "Add", {"nothing", "one"}, "ones");
    AddNode(graph, "Mul", {"ones", "rows"}, "scaled");
    AddNode(graph, "MatMul", {"scaled", "w"}, "y");
    compiler::CompileOptions options;
    if (!pass) options.disabled_passes = {"tiny-weights"};
    const Outcome outcome = CompileProto(model, options);
    REQUIRE(outcome.message.empty());
    const auto& zeroed = outcome.compiled.zeroed_weights;
    CHECK(zeroed.size() == (pass && largest >= 0x1p-40F ? 1 : 0));
    if (!zeroed.empty()) CHECK((zeroed[0].constant == "w" && zeroed[0].count == 2));
    return RunOnCounts(outcome.compiled.module, {4, 4}).values;
  };
  CHECK(run(2, false) == std::vector<float>{2, 0x1p-30F, -0x1.fffffcp-27F, 0x1p-26F});
  CHECK(run(2, true) == std::vector<float>{2, 0, 0, 0x1p-26F});
  CHECK(run(0x1p-40F, true) == std::vector<float>{0x1p-40F, 0, 0, 0x1p-26F});
  CHECK(run(0x1p-41F, true) == std::vector<float>{0x1p-41F, 0x1p-30F, -0x1.fffffcp-27F, 0x1p-26F});
}

// An addend is no factor, with a product in front of it or without one.
TEST_CASE("tiny-weights: terms and biases stay as they are") {
  for (const bool product : {false, true}) {
    onnx::ModelProto model = ModelOf({1, 2});
    onnx::GraphProto* graph = model.mutable_graph();
    AddFloats(graph, "w", {2, 2}, {0, 0, 0, 0});
    AddFloats(graph, "c", {2}, {0x1p-127F, 1});
    AddNode(graph, product ? "MatMul" : "Mul",
            product ? std::vector<std::string>{"x", "w"} : std::vector<std::string>{"x", "w0"}, "p");
    AddFloats(graph, "w0", {}, {0});
    AddNode(graph, "Add", {"p", "c"}, "a");
    AddNode(graph, "Reciprocal", {"a"}, "y");
    const Outcome outcome = CompileProto(model);
    REQUIRE(outcome.message.empty());
    CHECK(RunOnCounts(outcome.compiled.module, {1, 2}).values == std::vector<float>{0x1p127F, 1});
  }
}

TEST_CASE("square: other powers, and one that adds a dimension") {
  CHECK_FALSE(RunPass("square", Power({}, 3), {2, 3}).changes());
  CHECK_FALSE(RunPass("square", Power({1, 1, 1}, 2), {2, 3}).changes());
}

TEST_CASE("fuse-elementwise: a chain, with constants, attributes and what is read twice") {
  onnx::ModelProto model = ModelOf({"n", 3});
  onnx::GraphProto* graph = model.mutable_graph();
  AddScalar(graph, "half", 0.5F);
  AddFloats(graph, "row", {3}, {1, 2, 3});
  AddNode(graph, "Mul", {"x", "half"}, "a");
  AddNode(graph, "Add", {"row", "a"}, "b");
  AddFloat(AddNode(graph, "HardSigmoid", {"b"}, "c"), "alpha", 0.25F);
  AddNode(graph, "Mul", {"b", "c"}, "d");
  AddNode(graph, "Sub", {"d", "x"}, "y");
  CHECK(
      RunPass("fuse-elementwise", model, {2, 3}).after ==
      Lines{"%2 = rewire.fused {program=\"mul x0 0.5; add x1 r0; hard_sigmoid r1 0.25 0.5; mul r1 r2; sub r3 "
            "x0\"}(%0, @1)",
            "output y = %2"});
}

TEST_CASE("fuse-elementwise: comparisons, truth values and casts of them") {
  onnx::ModelProto model = ModelOf({4});
  onnx::GraphProto* graph = model.mutable_graph();
  AddScalar(graph, "two", 2);
  AddNode(graph, "Greater", {"x", "two"}, "a");
  AddNode(graph, "Not", {"a"}, "b");
  AddInt(AddNode(graph, "Cast", {"b"}, "c"), "to", 1);
  AddNode(graph, "Where", {"a", "x", "c"}, "y");
  CHECK(RunPass("fuse-elementwise", model, {4}).after ==
        Lines{"%1 = rewire.fused {program=\"less 2 x0; not r0; not_equal r1 0; where r0 x0 r2\"}(%0)",
              "output y = %1"});
}

TEST_CASE("fuse-elementwise: conversions between integers of 16 bits and f16 need no floats in between") {
  onnx::ModelProto model = ModelOf({4});
  onnx::GraphProto* graph = model.mutable_graph();
  onnx::TensorProto* scale = graph->add_initializer();
  scale->set_name("scale");
  scale->set_data_type(onnx::TensorProto::FLOAT16);
  scale->add_int32_data(0x3800);  // 0.5
  onnx::TensorProto* zero = graph->add_initializer();
  zero->set_name("zero");
  zero->set_data_type(onnx::TensorProto::INT16);
  zero->add_int32_data(3);
  AddInt(AddNode(graph, "Cast", {"x"}, "h"), "to", onnx::TensorProto::FLOAT16);
  AddNode(graph, "QuantizeLinear", {"h", "scale", "zero"}, "q");
  AddNode(graph, "DequantizeLinear", {"q", "scale", "zero"}, "d");
  AddInt(AddNode(graph, "Cast", {"d"}, "y"), "to", onnx::TensorProto::FLOAT);
  // The casts that stay are the model's, and those of the scale.
  CHECK(RunPass("fuse-elementwise", model, {4}).after ==
        Lines{"%1 = rewire.cast(%0)", "%3 = rewire.cast(@2)", "%5 = rewire.quantize_linear(%1, %3, @4)",
              "%6 = rewire.cast(@2)", "%7 = rewire.dequantize_linear(%5, %6, @4)", "%8 = rewire.cast(%7)",
              "output y = %8"});
}

TEST_CASE("fuse-elementwise: small powers, and kernels without vectors of their own") {
  onnx::ModelProto model = ModelOf({4});
  AddScalar(model.mutable_graph(), "three", 3);
  SECTION("a cube") {
    AddNode(model.mutable_graph(), "Pow", {"x", "three"}, "y");
    CHECK(RunPass("fuse-elementwise", model, {4}).after ==
          Lines{"%1 = rewire.fused {program=\"mul x0 x0; mul r0 x0\"}(%0)", "output y = %1"});
  }
  SECTION("softplus") {
    AddNode(model.mutable_graph(), "Softplus", {"x"}, "y");
    CHECK(RunPass("fuse-elementwise", model, {4}).after ==
          Lines{"%1 = rewire.fused {program=\"softplus x0\"}(%0)", "output y = %1"});
  }
}

TEST_CASE("fuse-elementwise: what it leaves apart") {
  onnx::ModelProto model = ModelOf({2, 200});
  onnx::GraphProto* graph = model.mutable_graph();
  AddFloats(graph, "row", {200}, std::vector<float>(200, 0.5F));
  SECTION("one node with vectors of its own") {
    AddNode(graph, "Add", {"x", "row"}, "y");
    CHECK_FALSE(RunPass("fuse-elementwise", model, {2, 200}).changes());
  }
  SECTION("a result that something else reads") {
    AddNode(graph, "Add", {"x", "row"}, "a");
    AddNode(graph, "Neg", {"a"}, "b");
    AddNode(graph, "ReduceMean", {"a"}, "m");
    AddNode(graph, "Mul", {"b", "m"}, "y");
    const Lines lines = RunPass("fuse-elementwise", model, {2, 200}).after;
    REQUIRE(lines.size() == 4);
    CHECK(lines[0] == "%2 = rewire.add(%0, @1)");
    CHECK(lines[2] == "%4 = rewire.fused {program=\"neg x0; mul r0 x1\"}(%2, %3)");
  }
  SECTION("a result that is broadcast") {
    AddNode(graph, "ReduceMean", {"x"}, "m");
    AddNode(graph, "Neg", {"m"}, "a");
    AddNode(graph, "Add", {"x", "a"}, "y");
    CHECK_FALSE(RunPass("fuse-elementwise", model, {2, 200}).changes());
  }
  SECTION("integers") {
    AddInt(AddNode(graph, "Cast", {"x"}, "a"), "to", 7);
    AddNode(graph, "Neg", {"a"}, "b");
    AddNode(graph, "Abs", {"b"}, "c");
    AddInt(AddNode(graph, "Cast", {"c"}, "y"), "to", 1);
    CHECK_FALSE(RunPass("fuse-elementwise", model, {2, 200}).changes());
  }
}

}  // namespace
}  // namespace rewire::test
