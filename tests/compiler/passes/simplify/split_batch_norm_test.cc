// SPDX-License-Identifier: Apache-2.0
// Batch normalization that becomes a product and a sum.
#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "rewire/tests/compiler/single_pass.h"

namespace rewire::test {
namespace {

// y = BatchNormalization(x), of two channels. With an epsilon of 0, the factors are 1 and 3, and the terms 4
// and -16.
onnx::ModelProto Normalized(const std::vector<Dim>& x) {
  onnx::ModelProto model = ModelOf(x);
  onnx::GraphProto* graph = model.mutable_graph();
  AddFloats(graph, "scale", {2}, {2, 1.5F});
  AddFloats(graph, "bias", {2}, {5, -1});
  AddFloats(graph, "mean", {2}, {1, 5});
  AddFloats(graph, "variance", {2}, {4, 0.25F});
  AddFloat(AddNode(graph, "BatchNormalization", {"x", "scale", "bias", "mean", "variance"}, "y"), "epsilon",
           0);
  return model;
}

TEST_CASE("split-batch-norm: a factor and a term for each channel") {
  const Lines split = {"%2 = rewire.mul(%0, @1)", "%4 = rewire.add(%2, @3)", "output y = %4"};
  CHECK(RunPass("split-batch-norm", Normalized({1, 2, 4, 4}), {1, 2, 4, 4}).after == split);
  CHECK(RunPass("split-batch-norm", Normalized({3, 2}), {3, 2}).after == split);
  const Outcome made = CompileProto(Normalized({1, 2, 1, 2}));
  REQUIRE(made.message.empty());
  // x = 0, 1 and 2, 3.
  CHECK(RunOnCounts(made.compiled.module, {1, 2, 1, 2}).values == std::vector<float>{4, 5, -10, -7});
}

TEST_CASE("split-batch-norm: between convolutions, and with what is elementwise behind it") {
  onnx::ModelProto model = ModelOf({1, 2, 4, 4});
  onnx::GraphProto* graph = model.mutable_graph();
  for (const char* name : {"scale", "bias", "mean", "variance"}) AddFloats(graph, name, {2}, {1, 2});
  AddFloats(graph, "w", {2, 2, 1, 1}, Numbers(4));
  AddNode(graph, "Conv", {"x", "w"}, "a");
  AddNode(graph, "Relu", {"a"}, "b");
  AddNode(graph, "BatchNormalization", {"b", "scale", "bias", "mean", "variance"}, "c");
  AddNode(graph, "Relu", {"c"}, "d");
  AddNode(graph, "Conv", {"d", "w"}, "y");
  CHECK(KernelsOf(RunPasses({"split-batch-norm", "pack-products", "channels-last", "fuse-elementwise"}, model,
                            {1, 2, 4, 4})
                      .after) == Lines{"rewire.transpose", "rewire.packed.conv", "rewire.fused",
                                       "rewire.packed.conv", "rewire.transpose"});
}

TEST_CASE("batch normalization by another number of channels is left to the kernel, which refuses it") {
  const std::int64_t means = GENERATE(1, 2);
  const std::int64_t others = GENERATE(1, 4);
  if (means == others) return;
  onnx::ModelProto model = ModelOf({1, 4, 3, 3});
  onnx::GraphProto* graph = model.mutable_graph();
  AddFloats(graph, "mean", {means}, Numbers(means));
  for (const char* name : {"scale", "bias", "variance"})
    AddFloats(graph, name, {others}, std::vector<float>(static_cast<std::size_t>(others), 1));
  const bool behind_conv = GENERATE(false, true);
  if (behind_conv) {
    AddFloats(graph, "w", {4, 4, 1, 1}, Numbers(16));
    AddNode(graph, "Conv", {"x", "w"}, "conv");
  }
  AddNode(graph, "BatchNormalization", {behind_conv ? "conv" : "x", "scale", "bias", "mean", "variance"},
          "y");
  const Outcome made = CompileProto(model);
  REQUIRE(made.message.empty());
  CHECK(std::any_of(made.compiled.module.kernels.begin(), made.compiled.module.kernels.end(),
                    [](const auto& kernel) { return kernel.name == "rewire.batch_norm"; }));
}

TEST_CASE("split-batch-norm: what is computed stays") {
  onnx::ModelProto model = ModelOf({1, 2, 4, 4});
  onnx::GraphProto* graph = model.mutable_graph();
  for (const char* name : {"scale", "bias", "mean"}) AddFloats(graph, name, {2}, {1, 2});
  AddIntList(AddNode(graph, "ReduceMax", {"x"}, "largest"), "axes", {0, 2, 3});
  AddInt(graph->mutable_node(0), "keepdims", 0);
  AddNode(graph, "BatchNormalization", {"x", "scale", "bias", "mean", "largest"}, "y");
  CHECK_FALSE(RunPass("split-batch-norm", model, {1, 2, 4, 4}).changes());
}

}  // namespace
}  // namespace rewire::test
