// SPDX-License-Identifier: Apache-2.0
// Convolutions of three spatial axes, and what lies between them.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "rewire/tests/compiler/single_pass.h"

namespace rewire::test {
namespace {

using Ints = std::vector<std::int64_t>;

// A Conv of volumes by windows of this size, which keep their size.
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
  AddFloats(graph, y + ".w", dims, Numbers(count));
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

}  // namespace
}  // namespace rewire::test
