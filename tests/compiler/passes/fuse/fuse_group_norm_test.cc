// SPDX-License-Identifier: Apache-2.0
// Group normalization that exporters spell out, and what becomes part of it.
#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "rewire/tests/compiler/single_pass.h"

namespace rewire::test {
namespace {

// reshape(instance_norm(reshape(x, [0, groups, -1])), the shape of x) of x [1, 4, 6], as "n".
onnx::ModelProto Grouped(std::int64_t groups, const std::vector<std::int64_t>& back = {1, 4, 6}) {
  onnx::ModelProto model = ModelOf({1, 4, 6});
  onnx::GraphProto* graph = model.mutable_graph();
  AddInts(graph, "parts", {0, groups, -1});
  AddInts(graph, "shape", back);
  AddFloats(graph, "s", {groups}, std::vector<float>(static_cast<std::size_t>(groups), 2));
  AddFloats(graph, "b", {groups}, std::vector<float>(static_cast<std::size_t>(groups), 3));
  AddNode(graph, "Reshape", {"x", "parts"}, "r");
  AddFloat(AddNode(graph, "InstanceNormalization", {"r", "s", "b"}, "i"), "epsilon", 0.5F);
  AddNode(graph, "Reshape", {"i", "shape"}, "n");
  return model;
}

void Scale(onnx::GraphProto* graph, const std::string& x, const std::vector<std::int64_t>& dims) {
  const std::int64_t count = dims.empty() ? 1 : *std::max_element(dims.begin(), dims.end());
  AddFloats(graph, "gamma", dims, Numbers(count));
  AddFloats(graph, "beta", dims, Numbers(count));
  AddNode(graph, "Mul", {x, "gamma"}, "scaled");
  AddNode(graph, "Add", {"beta", "scaled"}, "y");
}

TEST_CASE("fuse-group-norm: reshapes, and factors and terms for each channel") {
  const Lines fused = {"%3 = rewire.group_norm {epsilon=0.5, num_groups=2}(%0, @1, @2)", "output y = %3"};
  for (const std::vector<std::int64_t>& dims :
       {std::vector<std::int64_t>{4, 1}, {1, 4, 1}, {1}, std::vector<std::int64_t>{}}) {
    onnx::ModelProto model = Grouped(2);
    Scale(model.mutable_graph(), "n", dims);
    CHECK(RunPass("fuse-group-norm", model, {1, 4, 6}).after == fused);
  }
  onnx::ModelProto plain = Grouped(2);
  plain.mutable_graph()->mutable_node(2)->set_output(0, "y");
  CHECK(RunPass("fuse-group-norm", plain, {1, 4, 6}).after == fused);
}

TEST_CASE("fuse-group-norm: factors behind one without reshapes") {
  onnx::ModelProto model = ModelOf({1, 4, 6});
  onnx::GraphProto* graph = model.mutable_graph();
  AddFloats(graph, "s", {4}, {1, 2, 3, 4});
  AddFloats(graph, "b", {4}, {4, 3, 2, 1});
  AddFloat(AddNode(graph, "InstanceNormalization", {"x", "s", "b"}, "n"), "epsilon", 0.5F);
  Scale(graph, "n", {4, 1});
  const Lines fused = {"%3 = rewire.group_norm {epsilon=0.5}(%0, @1, @2)", "output y = %3"};
  CHECK(RunPass("fuse-group-norm", model, {1, 4, 6}).after == fused);
}

TEST_CASE("fuse-group-norm: what only looks like it") {
  SECTION("another shape behind it") {
    onnx::ModelProto model = Grouped(2, {1, 6, 4});
    model.mutable_graph()->mutable_node(2)->set_output(0, "y");
    CHECK_FALSE(RunPass("fuse-group-norm", model, {1, 4, 6}).changes());
  }
  SECTION("groups that are no whole channels") {
    onnx::ModelProto model = Grouped(8);
    model.mutable_graph()->mutable_node(2)->set_output(0, "y");
    CHECK_FALSE(RunPass("fuse-group-norm", model, {1, 4, 6}).changes());
  }
  SECTION("a factor for each position, which stays behind it") {
    onnx::ModelProto model = Grouped(2);
    Scale(model.mutable_graph(), "n", {6});
    CHECK(KernelsOf(RunPass("fuse-group-norm", model, {1, 4, 6}).after) ==
          Lines{"rewire.group_norm", "rewire.mul", "rewire.add"});
  }
  SECTION("groups that something else reads, too") {
    onnx::ModelProto model = Grouped(2);
    AddNode(model.mutable_graph(), "ReduceMax", {"i"}, "largest");
    AddNode(model.mutable_graph(), "Add", {"n", "largest"}, "y");
    CHECK_FALSE(RunPass("fuse-group-norm", model, {1, 4, 6}).changes());
  }
}

TEST_CASE("channels-last: group normalization between convolutions, with one slope for all in the product") {
  onnx::ModelProto model = ModelOf({1, 4, 6});
  onnx::GraphProto* graph = model.mutable_graph();
  AddFloats(graph, "w", {4, 4, 1}, Numbers(16));
  AddFloats(graph, "slope", {1, 1}, {0.25F});
  AddNode(graph, "Conv", {"x", "w"}, "c");
  AddNode(graph, "PRelu", {"c", "slope"}, "p");
  AddInts(graph, "parts", {0, 2, -1});
  AddInts(graph, "shape", {1, 4, 6});
  for (const char* name : {"s", "b"}) AddFloats(graph, name, {2}, {1, 2});
  AddNode(graph, "Reshape", {"p", "parts"}, "r");
  AddNode(graph, "InstanceNormalization", {"r", "s", "b"}, "i");
  AddNode(graph, "Reshape", {"i", "shape"}, "n");
  AddNode(graph, "Conv", {"n", "w"}, "y");
  CHECK(KernelsOf(RunPasses({"fuse-group-norm", "pack-products", "channels-last"}, model, {1, 4, 6}).after) ==
        Lines{"rewire.transpose", "rewire.packed.conv", "rewire.group_norm", "rewire.packed.conv",
              "rewire.transpose"});
}

}  // namespace
}  // namespace rewire::test
