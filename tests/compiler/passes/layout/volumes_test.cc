// SPDX-License-Identifier: Apache-2.0
// Convolutions of three spatial axes, and what lies between them.
#include <catch2/catch.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "rewire/tests/compiler/single_pass.h"

namespace rewire::test {
namespace {

using Ints = std::vector<std::int64_t>;

// A Conv of volumes by windows of this size, which keep their size. The weights have one sign: Winograd's
// form is off by a part of the largest term, not of the sum.
onnx::NodeProto* AddConv(onnx::GraphProto* graph, const std::string& x, const std::string& y, std::int64_t in,
                         std::int64_t out, const Ints& window) {
  Ints dims = {out, in}, pads;
  std::int64_t count = out * in;
  for (const std::int64_t size : window) {
    dims.push_back(size);
    pads.push_back(size / 2);
    count *= size;
  }
  pads.insert(pads.end(), pads.begin(), pads.end());
  std::vector<float> weights(static_cast<std::size_t>(count));
  std::iota(weights.begin(), weights.end(), 1.0F);
  for (float& weight : weights) weight /= static_cast<float>(count);
  AddFloats(graph, y + ".w", dims, weights);
  onnx::NodeProto* node = AddNode(graph, "Conv", {x, y + ".w"}, y);
  AddIntList(node, "pads", pads);
  return node;
}

TEST_CASE("channels-last: volumes, with residuals, pools and constants") {
  onnx::ModelProto model = ModelOf({1, 2, 2, 4, 6});
  onnx::GraphProto* graph = model.mutable_graph();
  AddConv(graph, "x", "a", 2, 3, {1, 1, 1});
  AddNode(graph, "Relu", {"a"}, "b");
  AddConv(graph, "b", "c", 3, 3, {3, 1, 1});
  AddNode(graph, "Add", {"c", "b"}, "d");
  AddNode(graph, "Relu", {"d"}, "e");
  AddFloats(graph, "constant", {1, 3, 2, 4, 6}, Numbers(144));
  AddNode(graph, "Mul", {"e", "constant"}, "f");
  onnx::NodeProto* pool = AddNode(graph, "MaxPool", {"f"}, "g");
  AddIntList(pool, "kernel_shape", {2, 2, 2});
  AddIntList(pool, "strides", {1, 2, 2});
  AddNode(graph, "GlobalAveragePool", {"g"}, "y");
  // The input alone is transposed. The residual is added where its product is.
  const std::vector<std::string> passes = {"pack-products", "channels-last", "add-residuals"};
  CHECK(KernelsOf(RunPasses(passes, model, {1, 2, 2, 4, 6}).after) ==
        Lines{"rewire.transpose", "rewire.packed.conv", "rewire.packed.conv", "rewire.mul", "rewire.max_pool",
              "rewire.reduce_mean", "reshape"});
}

// A Conv of 8 channels by 3 x 3 x 3 windows over volumes of 5 x 5, after the pass.
PassRun OfWindow(const Ints& window, const std::string& attribute = "", const Ints& values = {},
                 std::int64_t channels = 8, const Shape& size = {4, 5, 5}) {
  const Shape shape = {1, channels, size[0], size[1], size[2]};
  onnx::ModelProto model = ModelOf({1, channels, size[0], size[1], size[2]});
  onnx::NodeProto* conv = AddConv(model.mutable_graph(), "x", "conv", channels, 8, window);
  if (!attribute.empty()) AddIntList(conv, attribute, values);
  AddNode(model.mutable_graph(), "Relu", {"conv"}, "y");
  return RunPass("winograd", model, shape);
}

TEST_CASE("winograd: volumes by windows of 3 x 3 of some planes") {
  CHECK(OfWindow({3, 3, 3}, "strides", {2, 1, 1}).after ==
        Lines{"once:", "%2 = rewire.packed.winograd_weights(@1)",
              "%3 = rewire.transpose {perm=[0, 2, 3, 4, 1]}(%0)",
              "%4 = rewire.packed.winograd {channels=8, kernel_shape=[3, 3, 3], strides=[2, 1, 1], "
              "dilations=[1, 1, 1], pads=[1, 1, 1, 1, 1, 1], activation=\"relu\"}(%3, %2)",
              "%5 = rewire.transpose {perm=[0, 4, 1, 2, 3]}(%4)", "output y = %5"});
  for (const std::int64_t planes : {1, 2, 5}) CHECK(OfWindow({planes, 3, 3}).changes());
  CHECK(OfWindow({3, 3, 3}, "dilations", {2, 1, 1}).changes());
  CHECK(OfWindow({3, 3, 3}, "", {}, 8, {4, 4, 4}).changes());        // a tile of each plane
  CHECK_FALSE(OfWindow({3, 3, 3}, "", {}, 8, {3, 4, 4}).changes());  // three tiles
  CHECK_FALSE(OfWindow({3, 3, 3}, "", {}, 7).changes());             // too few channels
  CHECK_FALSE(OfWindow({3, 3, 3}, "strides", {1, 2, 1}).changes());
  CHECK_FALSE(OfWindow({3, 3, 3}, "dilations", {1, 1, 5}, 8, {4, 5, 12}).changes());  // one position each
  CHECK_FALSE(OfWindow({3, 3, 1}).changes());
  CHECK_FALSE(OfWindow({3, 5, 3}).changes());
}

TEST_CASE("winograd: the planes of windows count as channels do") {
  const auto changes = [](std::int64_t planes) {
    onnx::ModelProto model = ModelOf({1, 128, 2, 8, 8});
    onnx::NodeProto* conv = AddConv(model.mutable_graph(), "x", "y", 128, 128, {planes, 3, 3});
    AddIntList(conv, "strides", {1, 1, 1});
    return RunPass("winograd", model, {1, 128, 2, 8, 8}).changes();
  };
  CHECK(changes(1));
  CHECK_FALSE(changes(5));  // weights of more than 256 x 256 channels
}

}  // namespace
}  // namespace rewire::test
