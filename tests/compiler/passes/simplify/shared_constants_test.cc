// SPDX-License-Identifier: Apache-2.0
// Weights that several nodes use are packed once, and the file and the program hold them once.
#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "rewire/tests/compiler/quantized_models.h"
#include "rewire/vm/kernel_set.h"

namespace rewire::test {
namespace {

using Ints = std::vector<std::int64_t>;

std::vector<float> Counts(const Ints& shape, float first = -3) {
  std::int64_t count = 1;
  for (const std::int64_t dim : shape) count *= dim;
  std::vector<float> values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back((static_cast<float>(i % 7) + first) * 0.25F);
  return values;
}

// y = f(x) - f(-x).
using Add = std::function<void(onnx::GraphProto*, const std::string& x, const std::string& y)>;
onnx::ModelProto Twice(const Shape& shape, const Add& add) {
  onnx::ModelProto model = ModelOf({shape.begin(), shape.end()});
  onnx::GraphProto* graph = model.mutable_graph();
  AddNode(graph, "Neg", {"x"}, "negative");
  add(graph, "x", "a");
  add(graph, "negative", "b");
  AddNode(graph, "Sub", {"a", "b"}, "y");
  return model;
}

// The names of the program's constants of more than 16 bytes, in alphabetical order, if such small weights
// are not packed when it is loaded. Without the pass, the results are the same.
std::vector<std::string> ConstantsOnce(const onnx::ModelProto& model, const Shape& shape,
                                       bool shared = true) {
  compiler::CompileOptions options;
  options.disabled_passes = {"compute-at-load"};
  const Outcome together = CompileProto(model, options);
  options.disabled_passes.insert("share-constants");
  const Outcome apart = CompileProto(model, options);
  REQUIRE(apart.message.empty());
  REQUIRE(together.message.empty());
  const Answer expected = RunOnCounts(apart.compiled.module, shape);
  const Answer given = RunOnCounts(together.compiled.module, shape);
  CHECK(expected.error.empty());
  CHECK(given.error.empty());
  CHECK(given.values == expected.values);
  std::vector<std::string> names;
  for (const Constant& constant : (shared ? together : apart).compiled.module.constants) {
    const bool computed = constant.kind == ConstantKind::kComputed;
    if (computed || constant.raw_bytes > 16) names.push_back(constant.name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

struct Kind {
  const char* name;
  Shape x;
  Ints weights;
  Add add;  // reads the weights "w"
};

Add Convolution(Ints pads, std::int64_t group = 1) {
  return [=](onnx::GraphProto* graph, const std::string& x, const std::string& y) {
    onnx::NodeProto* conv = AddNode(graph, "Conv", {x, "w"}, y);
    AddIntList(conv, "pads", pads);
    AddInt(conv, "group", group);
  };
}

Add Plain(const char* type) {
  return [=](onnx::GraphProto* graph, const std::string& x, const std::string& y) {
    AddNode(graph, type, {x, "w"}, y);
  };
}

}  // namespace

TEST_CASE("share-constants: floats that two nodes use are packed once, in each form") {
  const Add transposed = [](onnx::GraphProto* graph, const std::string& x, const std::string& y) {
    AddIntList(AddNode(graph, "ConvTranspose", {x, "w"}, y), "strides", {2, 2});
  };
  const Add layer = [](onnx::GraphProto* graph, const std::string& x, const std::string& y) {
    AddInt(AddNode(graph, "RNN", {x, "w", "w"}, y), "hidden_size", 16);
  };
  const Kind kinds[] = {
      {"convolution", {1, 4, 5, 5}, {6, 4, 3, 3}, Convolution({0, 0, 0, 0})},
      {"depthwise", {1, 8, 5, 5}, {8, 1, 3, 3}, Convolution({1, 1, 1, 1}, 8)},
      {"transposed", {1, 4, 3, 3}, {4, 3, 2, 2}, transposed},
      {"product", {2, 4}, {4, 6}, Plain("MatMul")},
      {"gemm", {2, 4}, {4, 6}, Plain("Gemm")},
      {"recurrent", {3, 1, 16}, {1, 16, 16}, layer},  // for its input and its state, too
  };
  for (const Kind& kind : kinds) {
    INFO(kind.name);
    onnx::ModelProto model = Twice(kind.x, kind.add);
    AddFloats(model.mutable_graph(), "w", kind.weights, Counts(kind.weights));
    CHECK(ConstantsOnce(model, kind.x) == std::vector<std::string>{"w.packed"});
    const std::vector<std::string> apart = ConstantsOnce(model, kind.x, false);
    CHECK(std::set<std::string>(apart.begin(), apart.end()).count("w.packed#1") == 1);
  }
}

TEST_CASE("share-constants: weights that are packed when a program is loaded") {
  const Shape x = {1, 8, 8, 8};
  SECTION("in Winograd's form") {
    onnx::ModelProto model = Twice(x, Convolution({1, 1, 1, 1}));
    AddFloats(model.mutable_graph(), "w", {8, 8, 3, 3}, Counts({8, 8, 3, 3}));
    CHECK(ConstantsOnce(model, x) == std::vector<std::string>{"w", "w.winograd"});
    CHECK(ConstantsOnce(model, x, false) == std::vector<std::string>{"w", "w.winograd", "w.winograd#1"});
  }
  SECTION("by oneDNN") {
    onnx::ModelProto model = Twice(x, Convolution({1, 1, 1, 1}, 2));
    AddFloats(model.mutable_graph(), "w", {8, 4, 3, 3}, Counts({8, 4, 3, 3}));
    if (!KernelSet().AddLibrary("librewire_kernels_onednn.so")) return;
    const std::vector<std::string> shared = ConstantsOnce(model, x);
    CHECK(std::count(shared.begin(), shared.end(), "w.packed") == 1);
    CHECK(std::count(shared.begin(), shared.end(), "w.packed#1") == 0);
    CHECK(shared.size() < ConstantsOnce(model, x, false).size());
  }
}

TEST_CASE("share-constants: integers that two nodes use are packed once") {
  const Shape x = {2, 8};
  SECTION("of integer products") {
    const Add add = [](onnx::GraphProto* graph, const std::string& from, const std::string& y) {
      AddNode(graph, "QuantizeLinear", {from, "xs", "xz"}, y + ".q");
      AddNode(graph, "MatMulInteger", {y + ".q", "w", "xz"}, y + ".sums");
      AddInt(AddNode(graph, "Cast", {y + ".sums"}, y), "to", onnx::TensorProto::FLOAT);
    };
    onnx::ModelProto model = Twice(x, add);
    AddFloats(model.mutable_graph(), "xs", {}, {0.5F});
    AddWhole(model.mutable_graph(), "xz", {}, kU8, 3);
    AddWhole(model.mutable_graph(), "w", {8, 4}, kI8);
    const std::vector<std::string> shared = ConstantsOnce(model, x), apart = ConstantsOnce(model, x, false);
    CHECK(std::count(shared.begin(), shared.end(), "w.packed") == 1);
    CHECK(std::count(shared.begin(), shared.end(), "w.packed#1") == 0);
    CHECK(std::count(apart.begin(), apart.end(), "w.packed#1") == 1);
  }
  SECTION("of products of floats") {
    onnx::ModelProto model = Twice(x, Plain("MatMul"));
    onnx::GraphProto* graph = model.mutable_graph();
    AddWhole(graph, "bytes", {8, 6}, kI8);
    AddFloats(graph, "scales", {6}, {1, 2, 3, 4, 5, 6});
    AddInt(AddNode(graph, "DequantizeLinear", {"bytes", "scales"}, "w"), "axis", 1);
    for (int i = graph->node_size() - 1; i > 0; --i) graph->mutable_node()->SwapElements(i, i - 1);
    CHECK(ConstantsOnce(model, x) == std::vector<std::string>{"w.packed", "w.scale"});
    CHECK(ConstantsOnce(model, x, false).size() == 4);
  }
}

TEST_CASE("share-constants: what stays apart") {
  const Shape x = {2, 4};
  const std::vector<std::string> passes = {"pack-products", "share-constants"};
  SECTION("equal weights of different names, of which a user may replace one") {
    onnx::ModelProto model = ModelOf({2, 8});
    onnx::GraphProto* graph = model.mutable_graph();
    AddFloats(graph, "v", {8, 8}, Counts({8, 8}));
    AddFloats(graph, "w", {8, 8}, Counts({8, 8}));
    AddNode(graph, "MatMul", {"x", "v"}, "a");
    AddNode(graph, "MatMul", {"a", "w"}, "y");
    CHECK(ConstantsOnce(model, {2, 8}) == std::vector<std::string>{"v.packed", "w.packed"});
  }
  SECTION("weights that are packed in different ways") {
    onnx::ModelProto model = ModelOf({2, 4});
    onnx::GraphProto* graph = model.mutable_graph();
    AddFloats(graph, "w", {4, 4}, Counts({4, 4}));
    AddNode(graph, "MatMul", {"x", "w"}, "a");
    AddInt(AddNode(graph, "Gemm", {"a", "w"}, "y"), "transB", 1);
    CHECK(RunPasses(passes, model, x).after ==
          Lines{"once:", "%2 = rewire.packed.pack {order=\"IO\"}(@1)",
                "%3 = rewire.packed.pack {order=\"OI\"}(@1)", "%4 = rewire.packed.matmul {columns=4}(%0, %2)",
                "%5 = rewire.packed.matmul {columns=4}(%4, %3)", "output y = %5"});
    CHECK(ConstantsOnce(model, x) == std::vector<std::string>{"w.packed", "w.packed#1"});
  }
  SECTION("parts of one tensor, under its name") {
    onnx::ModelProto model = ModelOf({3, 1, 16});
    onnx::GraphProto* graph = model.mutable_graph();
    AddFloats(graph, "w", {2, 16, 16}, Counts({2, 16, 16}));  // 256 is no multiple of 7
    onnx::NodeProto* layer = AddNode(graph, "RNN", {"x", "w", "w"}, "y");
    AddInt(layer, "hidden_size", 16);
    AddString(layer, "direction", "bidirectional");
    const Lines lines = RunPasses(passes, model, {3, 1, 16}).after;
    REQUIRE(lines.size() == 6);
    CHECK(lines[3] == "%5 = rewire.concat {axis=0}(%2, %4)");
    CHECK_THAT(lines[4], Catch::EndsWith("(%0, %5, %5)"));
  }
}

TEST_CASE("share-constants: the constants of a block, and a result") {
  const bool taken = GENERATE(false, true);
  onnx::ModelProto model = ModelOf({2, 4});
  onnx::GraphProto* graph = model.mutable_graph();
  AddFloats(graph, "w", {4, 4}, Counts({4, 4}));
  AddFloats(graph, "least", {}, {taken ? 0.0F : 1000.0F});
  AddNode(graph, "MatMul", {"x", "w"}, "a");
  AddInt(AddNode(graph, "ReduceMax", {"x"}, "largest"), "keepdims", 0);
  AddNode(graph, "Greater", {"largest", "least"}, "condition");
  onnx::NodeProto* branch = AddNode(graph, "If", {"condition"}, "y");
  onnx::GraphProto* then = AddGraph(branch, "then_branch");
  AddNode(then, "MatMul", {"a", "w"}, "b");
  SetValue(then->add_output(), "b", {2, 4});
  onnx::GraphProto* otherwise = AddGraph(branch, "else_branch");
  AddNode(otherwise, "Neg", {"a"}, "c");
  SetValue(otherwise->add_output(), "c", {2, 4});
  CHECK(ConstantsOnce(model, {2, 4}) == std::vector<std::string>{"w.packed"});
}

}  // namespace rewire::test
