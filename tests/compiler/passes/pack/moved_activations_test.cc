// SPDX-License-Identifier: Apache-2.0
// Factors and terms behind an activation, which packed products take into their kernels.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "rewire/tests/compiler/single_pass.h"
#include "rewire/vm/vm.h"

namespace rewire::test {
namespace {

// x: f32[2, 3] by [3, 4], then Relu.
onnx::ModelProto Activated() {
  onnx::ModelProto model = ModelOf({2, 3});
  onnx::GraphProto* graph = model.mutable_graph();
  AddFloats(graph, "w", {3, 4}, {1, -2, 3, -4, 5, -6, 7, -8, 9, -10, 11, -12});
  AddNode(graph, "MatMul", {"x", "w"}, "product");
  AddNode(graph, "Relu", {"product"}, "relu");
  AddFloats(graph, "two", {}, {2});
  AddFloats(graph, "half", {1}, {0.5F});
  AddFloats(graph, "huge", {1, 1}, {1e30F});
  AddFloats(graph, "columns", {4}, {1, 2, 3, 4});
  AddFloats(graph, "larger", {1, 1, 1}, {2});
  return model;
}

struct Step {
  std::string op, left, right;
};

onnx::ModelProto Behind(const std::vector<Step>& steps) {
  onnx::ModelProto model = Activated();
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const std::string to = i + 1 == steps.size() ? "y" : "step" + std::to_string(i);
    AddNode(model.mutable_graph(), steps[i].op, {steps[i].left, steps[i].right}, to);
  }
  return model;
}

// The packed product and what follows.
Lines Packed(const std::vector<Step>& steps) {
  const Lines all = RunPass("pack-products", Behind(steps), {2, 3}).after;
  Lines lines;
  for (const std::string& line : all) {
    if (!lines.empty() || line.find("rewire.packed.matmul") != std::string::npos) lines.push_back(line);
  }
  return lines;
}

// A product that does all steps with these attributes.
void CheckTaken(const std::vector<Step>& steps, const std::string& attributes) {
  INFO(attributes);
  const Lines lines = Packed(steps);
  REQUIRE(lines.size() == 2);
  CHECK_THAT(lines[0],
             Catch::Contains("rewire.packed.matmul {columns=4, activation=\"relu\"" + attributes + "}("));
}

}  // namespace

TEST_CASE("pack-products: a factor and a term behind an activation, in either order or alone") {
  CheckTaken({{"Mul", "relu", "two"}, {"Add", "step0", "half"}}, ", post_scale=2.0, post_shift=0.5");
  CheckTaken({{"Add", "half", "relu"}, {"Mul", "two", "step0"}}, ", post_scale=2.0, post_shift=1.0");
  CheckTaken({{"Mul", "half", "relu"}}, ", post_scale=0.5");
  CheckTaken({{"Add", "relu", "two"}}, ", post_shift=2.0");
}

TEST_CASE("pack-products: differences and a quotient by a constant behind an activation") {
  CheckTaken({{"Sub", "relu", "two"}}, ", post_shift=-2.0");
  CheckTaken({{"Sub", "two", "relu"}, {"Div", "step0", "half"}}, ", post_scale=-2.0, post_shift=4.0");
  CheckTaken({{"Mul", "relu", "two"}, {"Div", "step0", "two"}}, "");
}

TEST_CASE("pack-products: what stays behind an activation") {
  CHECK_THAT(Packed({{"Div", "two", "relu"}}).at(1), Catch::Contains("rewire.div"));
  CHECK_THAT(Packed({{"Mul", "relu", "columns"}}).at(1), Catch::Contains("rewire.mul"));
  CHECK_THAT(Packed({{"Mul", "relu", "relu"}}).at(1), Catch::Contains("rewire.mul"));
  // This one has another rank.
  CHECK_THAT(Packed({{"Add", "relu", "larger"}}).at(1), Catch::Contains("rewire.add"));
  // And with the second factor it would be infinite.
  CHECK_THAT(Packed({{"Mul", "relu", "huge"}, {"Mul", "step0", "huge"}}).at(1),
             Catch::Contains("rewire.mul"));
  // Without an activation, a sum may follow that the product can do instead.
  const Lines lines = Packed({{"Mul", "product", "two"}, {"Add", "step0", "relu"}});
  CHECK_THAT(lines.at(0), !Catch::Contains("post_scale"));
}

TEST_CASE("add-residuals: a factor and a term behind the sum") {
  onnx::ModelProto model = ModelOf({2, 4});
  onnx::GraphProto* graph = model.mutable_graph();
  AddFloats(graph, "w", {4, 4}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16});
  AddFloats(graph, "half", {}, {0.5F});
  AddNode(graph, "MatMul", {"x", "w"}, "product");
  AddNode(graph, "Add", {"x", "product"}, "sum");
  const bool activated = GENERATE(false, true);
  if (activated) AddNode(graph, "Relu", {"sum"}, "relu");
  AddNode(graph, "Mul", {activated ? "relu" : "sum", "half"}, "y");
  std::string lines;
  compiler::CompileOptions options;
  options.dump = [&](const std::string& at, const std::string& text) {
    if (at == "add-residuals") lines = text;
  };
  REQUIRE(CompileProto(model, options).message.empty());
  INFO(lines);
  CHECK(lines.find("rewire.add") == std::string::npos);
  CHECK(lines.find("rewire.mul") == std::string::npos);
  CHECK_THAT(lines, Catch::Contains(std::string("rewire.packed.matmul {columns=4, ") +
                                    (activated ? "activation=\"relu\", " : "") + "post_scale=0.5}"));
}

TEST_CASE("pack-onednn: its convolutions have no factor behind the activation") {
  if (!KernelSet().AddLibrary("librewire_kernels_onednn.so")) return;
  onnx::ModelProto model = ModelOf({1, 4, 5, 5});
  onnx::GraphProto* graph = model.mutable_graph();
  AddFloats(graph, "w", {8, 2, 3, 3}, std::vector<float>(144, 0.5F));
  AddFloats(graph, "two", {}, {2});
  AddInt(AddNode(graph, "Conv", {"x", "w"}, "conv"), "group", 2);
  AddNode(graph, "Relu", {"conv"}, "relu");
  AddNode(graph, "Mul", {"relu", "two"}, "y");
  const PassRun run = RunPass("pack-onednn", model, {1, 4, 5, 5});
  REQUIRE(run.after.size() == 5);
  CHECK_THAT(run.after[2], Catch::EndsWith("activation=\"relu\"}(%0, %2, @3)"));
  CHECK_THAT(run.after[3], Catch::Contains("rewire.mul"));
}

}  // namespace rewire::test
