// SPDX-License-Identifier: Apache-2.0
// Depthwise convolutions and the products behind them become one kernel.
#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "rewire/tests/compiler/single_pass.h"

namespace rewire::test {
namespace {

using Ints = std::vector<std::int64_t>;

// How a model differs from the simplest one.
struct SeparableForm {
  std::int64_t channels = 6, columns = 4;
  std::int64_t multiplier = 1;
  Ints product_kernel = {1, 1}, product_strides = {1, 1}, product_pads = {0, 0, 0, 0};
  std::string between = "Relu";
  bool twice = false;  // what lies between is read by another operator, too
};

// A depthwise convolution of x [1, channels, 5, 7] in steps of 2, an activation, a product, and Sigmoid.
onnx::ModelProto Separable(const SeparableForm& form) {
  onnx::ModelProto model = ModelOf({1, form.channels, 5, 7});
  onnx::GraphProto* graph = model.mutable_graph();
  const std::int64_t outputs = form.channels * form.multiplier;
  const Ints& kernel = form.product_kernel;
  AddFloats(graph, "taps", {outputs, 1, 3, 3}, Numbers(outputs * 9));
  AddFloats(graph, "bias", {outputs}, Numbers(outputs));
  AddFloats(graph, "w", {form.columns, outputs, kernel[0], kernel[1]},
            Numbers(form.columns * outputs * kernel[0] * kernel[1]));
  onnx::NodeProto* depthwise = AddNode(graph, "Conv", {"x", "taps", "bias"}, "d");
  AddInt(depthwise, "group", form.channels);
  AddIntList(depthwise, "pads", {1, 1, 1, 1});
  AddIntList(depthwise, "strides", {2, 2});
  AddNode(graph, form.between, {"d"}, "a");
  onnx::NodeProto* product = AddNode(graph, "Conv", {"a", "w"}, "p");
  AddIntList(product, "strides", form.product_strides);
  AddIntList(product, "pads", form.product_pads);
  AddNode(graph, "Sigmoid", {"p"}, form.twice ? "s" : "y");
  if (form.twice) {
    AddNode(graph, "ReduceMax", {"a"}, "largest");
    AddNode(graph, "Add", {"s", "largest"}, "y");
  }
  return model;
}

Lines AfterSeparable(const SeparableForm& form) {
  return RunPasses({"pack-products", "channels-last", "fuse-separable"}, Separable(form),
                   {1, form.channels, 5, 7})
      .after;
}

std::string CallOf(const SeparableForm& form) {
  for (const std::string& line : AfterSeparable(form)) {
    const std::size_t at = line.find("rewire.packed.separable");
    if (at != std::string::npos) return line.substr(at);
  }
  return "";
}

TEST_CASE("fuse-separable: both become one, with both activations") {
  const std::string call = CallOf({});
  CHECK(call.find("channels=4") != std::string::npos);
  CHECK(call.find("kernel_shape=[3, 3]") != std::string::npos);
  CHECK(call.find("strides=[2, 2]") != std::string::npos);
  CHECK(call.find("pads=[1, 1, 1, 1]") != std::string::npos);
  CHECK(call.find("depthwise_activation=\"relu\"") != std::string::npos);
  CHECK(call.find(" activation=\"sigmoid\"") != std::string::npos);
}

TEST_CASE("fuse-separable: what stays apart") {
  const auto stays = [](const SeparableForm& form) {
    const Lines kernels = KernelsOf(AfterSeparable(form));
    return std::find(kernels.begin(), kernels.end(), "rewire.packed.depthwise") != kernels.end() &&
           CallOf(form).empty();
  };
  CHECK_FALSE(stays({}));
  CHECK(stays({.product_kernel = {1, 3}}));
  CHECK(stays({.product_strides = {1, 2}}));
  CHECK(stays({.product_pads = {0, 0, 0, 1}}));
  CHECK(stays({.multiplier = 2}));
  CHECK(stays({.between = "Sin"}));
  CHECK(stays({.twice = true}));
  // So many weights that reading them again takes longer than what is saved.
  CHECK_FALSE(stays({.channels = 512, .columns = 256}));
  CHECK(stays({.channels = 512, .columns = 272}));
}

TEST_CASE("fuse-separable: without a bias, and with a residual") {
  onnx::ModelProto model = ModelOf({1, 8, 6, 6});
  onnx::GraphProto* graph = model.mutable_graph();
  AddFloats(graph, "taps", {8, 1, 3, 3}, Numbers(72));
  AddFloats(graph, "w", {8, 8, 1, 1}, Numbers(64));
  onnx::NodeProto* depthwise = AddNode(graph, "Conv", {"x", "taps"}, "d");
  AddInt(depthwise, "group", 8);
  AddIntList(depthwise, "pads", {1, 1, 1, 1});
  AddNode(graph, "Conv", {"d", "w"}, "p");
  AddNode(graph, "Add", {"p", "x"}, "sum");
  AddNode(graph, "Relu", {"sum"}, "y");
  const std::vector<std::string> passes = {"pack-products", "channels-last", "add-residuals",
                                           "fuse-separable"};
  const Lines kernels = KernelsOf(RunPasses(passes, model, {1, 8, 6, 6}).after);
  CHECK(kernels ==
        Lines{"rewire.transpose", "rewire.transpose", "rewire.packed.separable", "rewire.transpose"});
}

}  // namespace
}  // namespace rewire::test
