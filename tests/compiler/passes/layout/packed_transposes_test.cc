// SPDX-License-Identifier: Apache-2.0
// Transposed convolutions by packed weights, transposes that move nothing, and axes of size 1.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "rewire/tests/compiler/single_pass.h"

namespace rewire::test {
namespace {

using Ints = std::vector<std::int64_t>;

// Adds a ConvTranspose by windows of 2 x 2 of weights [in, out / group, 2, 2].
onnx::NodeProto* AddTransposed(onnx::GraphProto* graph, const std::string& x, const std::string& y,
                               const Ints& weights, const Ints& strides) {
  AddFloats(graph, y + ".w", weights, Numbers(weights[0] * weights[1] * 4));
  onnx::NodeProto* node = AddNode(graph, "ConvTranspose", {x, y + ".w"}, y);
  AddIntList(node, "strides", strides);
  return node;
}

// x: f32[1, 2, 3, 4].
onnx::ModelProto Alone(const Ints& strides, const std::string& attribute = "", const Ints& values = {}) {
  onnx::ModelProto model = ModelOf({1, 2, 3, 4});
  onnx::NodeProto* node = AddTransposed(model.mutable_graph(), "x", "y", {2, 3, 2, 2}, strides);
  if (!attribute.empty()) AddIntList(node, attribute, values);
  return model;
}

bool IsPacked(const onnx::ModelProto& model) {
  return RunPass("pack-products", model, {1, 2, 3, 4}).changes();
}

TEST_CASE("pack-products: transposed convolutions whose windows do not overlap") {
  onnx::ModelProto model = Alone({2, 2});
  model.mutable_graph()->mutable_node(0)->set_output(0, "conv");
  AddNode(model.mutable_graph(), "Relu", {"conv"}, "y");
  const Lines lines = RunPass("pack-products", model, {1, 2, 3, 4}).after;
  CHECK(lines == Lines{"once:", "%2 = rewire.packed.pack {order=\"OI\"}(@1)",
                       "%4 = rewire.packed.pack {order=\"OI\"}(@3)", "%5 = rewire.concat {axis=0}(%2, %4)",
                       "%6 = rewire.transpose {perm=[0, 2, 3, 1]}(%0)",
                       "%7 = rewire.packed.conv_transpose {channels=3, kernel_shape=[2, 2], "
                       "activation=\"relu\"}(%6, %5)",
                       "%8 = rewire.transpose {perm=[0, 3, 1, 2]}(%7)", "output y = %8"});
}

TEST_CASE("pack-products: transposed convolutions that it leaves") {
  REQUIRE(IsPacked(Alone({2, 2})));
  REQUIRE(IsPacked(Alone({2, 2}, "pads", {0, 0, 0, 0})));
  CHECK_FALSE(IsPacked(Alone({1, 1})));  // windows overlap
  CHECK_FALSE(IsPacked(Alone({2, 1})));
  CHECK_FALSE(IsPacked(Alone({2, 3})));  // gaps between them
  CHECK_FALSE(IsPacked(Alone({2, 2}, "pads", {1, 0, 0, 0})));
  CHECK_FALSE(IsPacked(Alone({2, 2}, "output_padding", {0, 1})));
  CHECK_FALSE(IsPacked(Alone({2, 2}, "dilations", {1, 2})));
  CHECK_FALSE(IsPacked(Alone({2, 2}, "output_shape", {6, 8})));
  onnx::ModelProto groups = Alone({2, 2});
  AddInt(groups.mutable_graph()->mutable_node(0), "group", 2);
  CHECK_FALSE(IsPacked(groups));
}

TEST_CASE("pack-products: transposed convolutions whose output_shape cuts windows stay") {
  // Constants are folded, so that the size is known when the pass runs.
  for (const Ints& size : {Ints{6, 8}, Ints{5, 8}, Ints{6, 7}, Ints{3, 3}, Ints{1, 1}}) {
    INFO("output_shape " << size[0] << " " << size[1]);
    const onnx::ModelProto model = Alone({2, 2}, "output_shape", size);
    compiler::CompileOptions options, without;
    without.disabled_passes = {"pack-products"};
    std::string text;
    options.dump = [&](const std::string& stage, const std::string& program) {
      if (stage == "pack-products") text = program;
    };
    const Outcome packed = CompileProto(model, options), plain = CompileProto(model, without);
    REQUIRE(packed.message.empty());
    const bool is_packed = text.find("rewire.packed.conv_transpose") != std::string::npos;
    CHECK(is_packed == (size == Ints{6, 8}));
    const Answer given = RunOnCounts(packed.compiled.module, {1, 2, 3, 4});
    CHECK(given.error.empty());
    CHECK(given.values == RunOnCounts(plain.compiled.module, {1, 2, 3, 4}).values);
  }
}

TEST_CASE("channels-last: transposed convolutions between convolutions") {
  onnx::ModelProto model = ModelOf({1, 2, 3, 4});
  onnx::GraphProto* graph = model.mutable_graph();
  const auto conv = [&](const std::string& x, const std::string& y) {
    AddFloats(graph, y + ".w", {5, 5, 1, 1}, Numbers(25));
    AddNode(graph, "Conv", {x, y + ".w"}, y);
  };
  AddTransposed(graph, "x", "first", {2, 5, 2, 2}, {2, 2});
  conv("first", "a");
  AddNode(graph, "Neg", {"a"}, "b");
  AddTransposed(graph, "b", "c", {5, 5, 2, 2}, {2, 2});
  AddNode(graph, "Sigmoid", {"c"}, "d");
  conv("d", "y");
  // The input and the output alone are transposed.
  CHECK(KernelsOf(RunPasses({"pack-products", "channels-last"}, model, {1, 2, 3, 4}).after) ==
        Lines{"rewire.concat", "rewire.concat", "rewire.transpose", "rewire.packed.conv_transpose",
              "rewire.packed.conv", "rewire.neg", "rewire.packed.conv_transpose", "rewire.packed.conv",
              "rewire.transpose"});
}

TEST_CASE("channels-last: elements that lie in the order of both layouts") {
  onnx::ModelProto model = ModelOf({1, 1, 3, 4});
  AddTransposed(model.mutable_graph(), "x", "y", {1, 1, 2, 2}, {2, 2});
  CHECK(KernelsOf(RunPasses({"pack-products", "channels-last"}, model, {1, 1, 3, 4}).after) ==
        Lines{"rewire.concat", "reshape", "rewire.packed.conv_transpose", "reshape"});
}

TEST_CASE("channels-last: spatial axes of size 1 that come and go") {
  onnx::ModelProto model = ModelOf({2, 1, 5, 3});
  onnx::GraphProto* graph = model.mutable_graph();
  AddInts(graph, "second", {2});
  AddInts(graph, "third", {3});
  AddIntList(AddNode(graph, "Transpose", {"x"}, "image"), "perm", {0, 3, 1, 2});
  AddNode(graph, "Squeeze", {"image", "second"}, "line");
  AddNode(graph, "Relu", {"line"}, "positive");
  AddNode(graph, "Unsqueeze", {"positive", "third"}, "column");
  AddIntList(AddNode(graph, "Transpose", {"column"}, "y"), "perm", {0, 2, 3, 1});
  CHECK(RunPass("channels-last", model, {2, 1, 5, 3}).after ==
        Lines{"%1 = reshape(%0)", "%2 = rewire.relu(%1)", "%3 = reshape(%2)", "output y = %3"});
}

}  // namespace
}  // namespace rewire::test
