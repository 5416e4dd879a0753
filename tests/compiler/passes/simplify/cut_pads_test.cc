// SPDX-License-Identifier: Apache-2.0
// Convolutions whose ends a slice cuts off.
#include <catch2/catch.hpp>
#include <limits>
#include <string>
#include <vector>

#include "rewire/tests/compiler/single_pass.h"

namespace rewire::test {
namespace {

using Ints = std::vector<std::int64_t>;

// A convolution of three taps, dilated by 2, and a slice of the last axis, of x [1, 2, 7].
onnx::ModelProto Causal(const Ints& pads, std::int64_t start, std::int64_t end, std::int64_t axis = 2,
                        std::int64_t step = 1, std::int64_t stride = 1) {
  onnx::ModelProto model = ModelOf({1, 2, 7});
  onnx::GraphProto* graph = model.mutable_graph();
  AddFloats(graph, "w", {2, 2, 3}, Numbers(12));
  onnx::NodeProto* conv = AddNode(graph, "Conv", {"x", "w"}, "c");
  AddIntList(conv, "dilations", {2});
  AddIntList(conv, "strides", {stride});
  AddIntList(conv, "pads", pads);
  AddInts(graph, "start", {start});
  AddInts(graph, "end", {end});
  AddInts(graph, "axis", {axis});
  AddInts(graph, "step", {step});
  AddNode(graph, "Slice", {"c", "start", "end", "axis", "step"}, "y");
  return model;
}

PassRun Cut(const onnx::ModelProto& model) { return RunPass("cut-pads", model, {1, 2, 7}); }

constexpr std::int64_t kEnd = std::numeric_limits<std::int64_t>::max();

TEST_CASE("cut-pads: a convolution leaves out what a slice cuts off") {
  const auto pads_of = [](const onnx::ModelProto& model) {
    const Lines lines = Cut(model).after;
    REQUIRE(KernelsOf(lines) == Lines{"rewire.conv"});
    const std::size_t at = lines[0].find("pads=");
    return lines[0].substr(at, lines[0].find(']', at) + 1 - at);
  };
  CHECK(pads_of(Causal({4, 4}, 0, -4)) == "pads=[4, 0]");
  CHECK(pads_of(Causal({4, 4}, 0, -1, -1)) == "pads=[4, 3]");
  CHECK(pads_of(Causal({4, 4}, 4, kEnd)) == "pads=[0, 4]");
  CHECK(pads_of(Causal({4, 4}, 2, -2)) == "pads=[2, 2]");
}

TEST_CASE("cut-pads: slices that stay") {
  CHECK_FALSE(Cut(Causal({4, 2}, 0, -3)).changes());  // more than the pad
  CHECK_FALSE(Cut(Causal({2, 4}, 3, kEnd)).changes());
  CHECK_FALSE(Cut(Causal({1, 4}, 0, -4)).changes());        // an image may be too small for the window
  CHECK_FALSE(Cut(Causal({4, 4}, 0, -4, 2, 2)).changes());  // every second one
  CHECK_FALSE(Cut(Causal({4, 4}, 0, -4, 2, 1, 2)).changes());
  CHECK_FALSE(Cut(Causal({4, 4}, 0, -1, 1)).changes());  // channels
  CHECK_FALSE(Cut(Causal({4, 4}, -7, kEnd)).changes());
  onnx::ModelProto twice = Causal({4, 4}, 0, -4);
  twice.mutable_graph()->mutable_node(1)->set_output(0, "s");
  AddNode(twice.mutable_graph(), "ReduceMax", {"c"}, "largest");
  AddNode(twice.mutable_graph(), "Add", {"s", "largest"}, "y");
  CHECK_FALSE(Cut(twice).changes());
}

}  // namespace
}  // namespace rewire::test
