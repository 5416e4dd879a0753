// SPDX-License-Identifier: Apache-2.0
// Bytes in place of floats behind integer products: the same bytes on every graph, and no other graph
// changes.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <map>
#include <random>
#include <sstream>

#include "rewire/tests/compiler/quantized_models.h"

namespace rewire::test {
namespace {

const std::vector<std::string> kBoth = {"integer-products", "quantize-early"};

// A model whose floats "s" come from a convolution of integers [2, channels, 6, 8].
onnx::ModelProto Sums(std::int64_t channels = 3, float bias = 2) {
  onnx::ModelProto model = Quantized({2, 2, 6, 8});
  onnx::GraphProto* graph = model.mutable_graph();
  AddNode(graph, "DequantizeLinear", {"xq", "xs", "xz"}, "xd");
  AddWhole(graph, "w", {channels, 2, 3, 3}, kI8, -100, 27);
  AddFloats(graph, "ws", {}, {0.0625F});
  AddWhole(graph, "wz", {}, kI8, 0);
  AddNode(graph, "DequantizeLinear", {"w", "ws", "wz"}, "wd");
  AddFloats(graph, "b", {channels}, std::vector<float>(static_cast<std::size_t>(channels), bias));
  AddIntList(AddNode(graph, "Conv", {"xd", "wd", "b"}, "s"), "pads", {1, 1, 1, 1});
  return model;
}

// The floats as bytes, and back as "y".
void Finish(onnx::GraphProto* graph, const std::string& from, float scale = 4) {
  AddFloats(graph, "ys", {}, {scale});
  AddWhole(graph, "yz", {}, kU8, 100);
  AddNode(graph, "QuantizeLinear", {from, "ys", "yz"}, "yq");
  AddNode(graph, "DequantizeLinear", {"yq", "ys", "yz"}, "y");
}

// The kernels whose results are quantized, by the lines of a graph.
std::vector<std::string> QuantizedKernels(const Lines& lines) {
  std::map<std::string, std::string> made;
  std::vector<std::string> kernels;
  for (const std::string& line : lines) {
    std::istringstream words(line);
    std::string value, equals, kernel;
    words >> value >> equals >> kernel;
    kernel = kernel.substr(0, kernel.find('('));
    made[value] = kernel;
    if (kernel != "rewire.quantize_linear") continue;
    const std::size_t from = line.rfind('(') + 1;
    const std::string input = line.substr(from, line.find(',', from) - from);
    if (made.count(input) != 0) kernels.push_back(made[input]);
  }
  return kernels;
}

bool Moves(const onnx::ModelProto& model) {
  const Lines without = RunPasses({"integer-products"}, model, {2, 2, 6, 8}).after;
  return RunPasses(kBoth, model, {2, 2, 6, 8}).after != without;
}

// Adds up to `count` nodes that move elements of "s", and returns the last value. All values have four axes.
std::string Movement(onnx::GraphProto* graph, std::mt19937* random, int count) {
  const auto draw = [&](std::int64_t limit) { return static_cast<std::int64_t>((*random)()) % limit; };
  std::string at = "s";
  std::int64_t rows = 6, columns = 8;
  for (int i = 0; i < count; ++i) {
    const std::string next = "moved" + std::to_string(i);
    switch (draw(5)) {
      case 0: {
        onnx::NodeProto* pool = AddNode(graph, "MaxPool", {at}, next);
        AddIntList(pool, "kernel_shape", {2, 3});
        AddIntList(pool, "strides", {1 + draw(2), 1});
        AddIntList(pool, "pads", {1, 1, 1, 1});
        const std::int64_t stride = pool->attribute(1).ints(0);
        rows = (rows + 2 - 2) / stride + 1;
        columns = columns + 2 - 3 + 1;
        break;
      }
      case 1:
        AddIntList(AddNode(graph, "Transpose", {at}, next), "perm", {0, 1, 3, 2});
        std::swap(rows, columns);
        break;
      case 2:
        AddInts(graph, next + ".shape", {2, -1, columns, rows});
        AddNode(graph, "Reshape", {at, next + ".shape"}, next);
        std::swap(rows, columns);
        break;
      case 3:
        AddInts(graph, next + ".from", {1});
        AddInts(graph, next + ".to", {INT64_MAX});
        AddInts(graph, next + ".axes", {3});
        AddNode(graph, "Slice", {at, next + ".from", next + ".to", next + ".axes"}, next);
        --columns;
        break;
      default: {
        AddFloats(graph, next + ".scales", {4}, {1, 1, 2, 1});
        onnx::NodeProto* resize = AddNode(graph, "Resize", {at, "", next + ".scales"}, next);
        AddString(resize, "mode", "nearest");
        rows *= 2;
        break;
      }
    }
    at = next;
  }
  return at;
}

TEST_CASE("quantize-early: random graphs give the same bytes, and nothing but products is quantized") {
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    onnx::ModelProto model = Sums();
    onnx::GraphProto* graph = model.mutable_graph();
    if (seed % 3 == 1) {
      graph->mutable_node(graph->node_size() - 1)->set_output(0, "before");
      AddNode(graph, "Relu", {"before"}, "s");
    }
    // Powers of two keep all sums and quotients exact, so that equal bytes mean equal lines of x.
    Finish(graph, Movement(graph, &random, 1 + static_cast<int>(seed % 4)), seed % 2 == 0 ? 4.0F : 0.5F);
    for (const std::string& kernel : QuantizedKernels(RunPasses(kBoth, model, {2, 2, 6, 8}).after))
      CHECK((kernel == "rewire.add" || kernel == "rewire.relu"));
  }
}

TEST_CASE("quantize-early: each part of a concatenation is quantized by itself") {
  onnx::ModelProto model = Sums();
  onnx::GraphProto* graph = model.mutable_graph();
  AddFloats(graph, "c", {3}, {-1, 0, 1});
  AddIntList(AddNode(graph, "Conv", {"xd", "wd", "c"}, "t"), "pads", {1, 1, 1, 1});
  AddIntList(AddNode(graph, "MaxPool", {"s"}, "pooled"), "kernel_shape", {1, 1});
  AddInt(AddNode(graph, "Concat", {"pooled", "t"}, "joined"), "axis", 1);
  Finish(graph, "joined");
  SECTION("if both are sums") {
    const Lines lines = RunPasses(kBoth, model, {2, 2, 6, 8}).after;
    CHECK(QuantizedKernels(lines) == std::vector<std::string>{"rewire.add", "rewire.add"});
  }
  SECTION("not if one is something else") {
    AddNode(graph, "Abs", {"t"}, "positive");
    onnx::NodeProto* concat = graph->mutable_node(graph->node_size() - 4);
    REQUIRE(concat->op_type() == "Concat");
    concat->set_input(1, "positive");
    graph->mutable_node()->SwapElements(graph->node_size() - 1, graph->node_size() - 4);
    graph->mutable_node()->SwapElements(graph->node_size() - 1, graph->node_size() - 3);
    graph->mutable_node()->SwapElements(graph->node_size() - 1, graph->node_size() - 2);
    CHECK_FALSE(Moves(model));
  }
}

TEST_CASE("quantize-early: bytes between two finite scales are looked up, also where they are joined") {
  const float scale = GENERATE(0.25F, INFINITY);
  onnx::ModelProto model = Quantized({2, 2, 6, 8});
  onnx::GraphProto* graph = model.mutable_graph();
  AddNode(graph, "DequantizeLinear", {"xq", "xs", "xz"}, "xd");
  AddFloats(graph, "other", {}, {scale});
  AddNode(graph, "DequantizeLinear", {"xq", "other", "xz"}, "zd");
  AddInt(AddNode(graph, "Concat", {"xd", "zd"}, "joined"), "axis", 1);
  Finish(graph, "joined");
  const Lines lines = RunPasses({"quantize-early", "map-bytes"}, model, {2, 2, 6, 8}).after;
  // The tables of both parts are quantized by themselves, or what is joined is.
  const std::vector<std::string> tables(2, "rewire.dequantize_linear"), joined(1, "rewire.concat");
  CHECK(QuantizedKernels(lines) == (std::isfinite(scale) ? tables : joined));
  CHECK(Calls(lines, "rewire.map_bytes") == std::isfinite(scale));
}

TEST_CASE("quantize-early: both sides of Where are quantized by themselves") {
  onnx::ModelProto model = Sums(2);
  onnx::GraphProto* graph = model.mutable_graph();
  AddFloats(graph, "limit", {}, {0.25F});
  AddNode(graph, "Greater", {"x", "limit"}, "condition");
  AddFloats(graph, "other", {}, {0.75F});
  AddNode(graph, "DequantizeLinear", {"xq", "other", "xz"}, "zd");
  SECTION("sums, and bytes of another scale") {
    AddNode(graph, "Where", {"condition", "s", "zd"}, "chosen");
    Finish(graph, "chosen");
    const Lines lines = RunPasses(kBoth, model, {2, 2, 6, 8}).after;
    CHECK(QuantizedKernels(lines) == std::vector<std::string>{"rewire.add", "rewire.dequantize_linear"});
  }
  SECTION("not if one is something else") {
    AddNode(graph, "Where", {"condition", "s", "x"}, "chosen");
    Finish(graph, "chosen");
    CHECK_FALSE(Moves(model));
  }
}

TEST_CASE("quantize-early: what would not be the same or would be slower stays") {
  onnx::ModelProto model = Sums(3, GENERATE(2.0F, INFINITY));
  onnx::GraphProto* graph = model.mutable_graph();
  const bool is_finite = std::isfinite(graph->initializer(5).float_data(0));
  const auto pool = [&](const std::string& from) {
    AddIntList(AddNode(graph, "MaxPool", {from}, "pooled"), "kernel_shape", {2, 2});
    return "pooled";
  };
  SECTION("a pool of sums changes, unless a term is infinite") {
    Finish(graph, pool("s"));
    CHECK(Moves(model) == is_finite);
  }
  SECTION("a transpose of sums changes, whatever the terms are") {
    AddIntList(AddNode(graph, "Transpose", {"s"}, "moved"), "perm", {0, 1, 3, 2});
    Finish(graph, "moved");
    CHECK(Moves(model));
  }
  SECTION("a pool of transposed sums changes, unless a term is infinite") {
    AddIntList(AddNode(graph, "Transpose", {"s"}, "moved"), "perm", {0, 1, 3, 2});
    Finish(graph, pool("moved"));
    CHECK(Moves(model) == is_finite);
  }
  SECTION("the floats of the product are read too") {
    pool("s");
    AddInts(graph, "axes", {2, 3});
    AddNode(graph, "ReduceMax", {"s"}, "most");
    AddNode(graph, "Add", {"pooled", "most"}, "sum");
    Finish(graph, "sum");
    CHECK_FALSE(Moves(model));
  }
  SECTION("the floats behind the pool are read too") {
    pool("s");
    AddNode(graph, "ReduceMax", {"pooled"}, "most");
    Finish(graph, "pooled");
    graph->mutable_node(graph->node_size() - 1)->set_output(0, "floats");
    AddNode(graph, "Add", {"floats", "most"}, "y");
    CHECK_FALSE(Moves(model));
  }
  SECTION("a pool of means") {
    AddIntList(AddNode(graph, "AveragePool", {"s"}, "means"), "kernel_shape", {2, 2});
    Finish(graph, "means");
    CHECK_FALSE(Moves(model));
  }
  SECTION("floats that are no sums of integers") {
    AddNode(graph, "Abs", {"s"}, "positive");
    Finish(graph, pool("positive"));
    CHECK_FALSE(Moves(model));
  }
  SECTION("a negative scale, which turns the order") {
    Finish(graph, pool("s"), -4);
    CHECK_FALSE(Moves(model));
  }
}

}  // namespace
}  // namespace rewire::test
