// SPDX-License-Identifier: Apache-2.0
// Attention that a model spells out becomes one kernel.
#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "rewire/tests/compiler/single_pass.h"

namespace rewire::test {
namespace {

using Ints = std::vector<std::int64_t>;

// How a model differs from the simplest one.
struct AttentionForm {
  std::vector<Dim> x = {1, 5, 6};
  Ints cut = {1, 5, 2, 3};  // x as [batch, length, heads, size]
  // Adds what makes the softmax's input "scores" of the product "raw".
  std::function<void(onnx::GraphProto*)> score = [](onnx::GraphProto* graph) {
    AddNode(graph, "Identity", {"raw"}, "scores");
  };
  // The sources of the keys and values, and of the queries.
  std::string keys = "cut", queries = "cut";
  bool halves = false;       // keys and queries after they are transposed
  Ints turn = {0, 2, 3, 1};  // of the keys
  std::int64_t axis = -1;
  bool joins = true;
};

void Transpose(onnx::GraphProto* graph, const std::string& from, const Ints& perm, const std::string& to) {
  AddIntList(AddNode(graph, "Transpose", {from}, to), "perm", perm);
}

// Self-attention over small(x), which is x / 16.
onnx::ModelProto Attention(const AttentionForm& form) {
  onnx::ModelProto model = ModelOf(form.x);
  onnx::GraphProto* graph = model.mutable_graph();
  AddFloats(graph, "sixteenth", {}, {0.0625F});
  AddFloats(graph, "half", {}, {0.5F});
  AddInts(graph, "apart", form.cut);
  AddInts(graph, "whole", {form.cut[0], form.cut[1], -1});
  AddNode(graph, "Mul", {"x", "sixteenth"}, "small");
  AddNode(graph, "Reshape", {"small", "apart"}, "cut");
  Transpose(graph, form.queries, {0, 2, 1, 3}, "q");
  Transpose(graph, form.keys, form.turn, "k");
  Transpose(graph, "cut", {0, 2, 1, 3}, "v");
  AddNode(graph, "Mul", {"q", "half"}, "half q");
  AddNode(graph, "Div", {"k", "half"}, "double k");
  AddNode(graph, "MatMul", {form.halves ? "half q" : "q", form.halves ? "double k" : "k"}, "raw");
  form.score(graph);
  AddInt(AddNode(graph, "Softmax", {"scores"}, "weights"), "axis", form.axis);
  AddNode(graph, "MatMul", {"weights", "v"}, form.joins ? "heads" : "y");
  if (!form.joins) return model;
  Transpose(graph, "heads", {0, 2, 1, 3}, "turned");
  AddNode(graph, "Reshape", {"turned", "whole"}, "y");
  return model;
}

Shape ShapeOf(const AttentionForm& form) { return {form.cut[0], form.cut[1], form.cut[2] * form.cut[3]}; }

Lines AfterAttention(const AttentionForm& form) {
  return RunPass("fuse-attention", Attention(form), ShapeOf(form)).after;
}

// The line with the kernel; empty if there is none.
std::string CallOf(const Lines& lines) {
  for (const std::string& line : lines) {
    const std::size_t at = line.find("rewire.attention");
    if (at != std::string::npos) return line.substr(at);
  }
  return "";
}
std::string CallOf(const AttentionForm& form) { return CallOf(AfterAttention(form)); }

// Adds the operators in turn: each reads the one before, "raw" first, and a scalar or tensor.
std::function<void(onnx::GraphProto*)> Steps(std::vector<std::pair<std::string, std::string>> steps) {
  return [steps](onnx::GraphProto* graph) {
    std::string value = "raw";
    AddFloats(graph, "two", {}, {2});
    AddFloats(graph, "ones", {1, 1, 1}, {3});
    AddFloats(graph, "bias", {1, 1, 5, 5}, Numbers(25));
    AddFloats(graph, "row", {5}, Numbers(5));
    AddFloats(graph, "by_head", {2, 1, 1}, {1, 2});
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const std::string next = i + 1 == steps.size() ? "scores" : "step" + std::to_string(i);
      AddNode(graph, steps[i].first, {value, steps[i].second}, next);
      value = next;
    }
  };
}

TEST_CASE("fuse-attention: heads are cut and joined by the kernel") {
  const Lines lines = AfterAttention({});
  CHECK(lines == Lines{"%2 = rewire.mul(%0, @1)", "%3 = rewire.attention {scale=1.0, heads=2}(%2, %2, %2)",
                       "output y = %3"});
}

TEST_CASE("fuse-attention: queries that come in heads, or a result that stays so") {
  AttentionForm form;
  form.joins = false;
  // The kernel wants the queries as it gives the result.
  CHECK(CallOf(form) == "rewire.attention {scale=1.0, heads=2}(%4, %2, %2)");
}

TEST_CASE("fuse-attention: factors at the scores, the queries and the keys become one") {
  AttentionForm form;
  form.score = Steps({{"Mul", "two"}, {"Div", "ones"}});
  CHECK(CallOf(form).find("{scale=0.66666666") == 17);
  form.halves = true;
  form.score = Steps({{"Mul", "two"}});
  CHECK(CallOf(form).find("{scale=2.0, ") == 17);
}

TEST_CASE("fuse-attention: biases of all shapes, and factors below them") {
  for (const char* bias : {"bias", "row", "ones", "by_head"}) {
    INFO(bias);
    AttentionForm form;
    form.score = Steps({{"Mul", "two"}, {"Add", bias}});
    const std::string call = CallOf(form);
    CHECK(call.find("{scale=2.0, ") != std::string::npos);
    CHECK(call.rfind(", ") > call.find("@"));  // two that are left out, and the bias
  }
}

TEST_CASE("fuse-attention: keys that lie as they are needed are not transposed") {
  AttentionForm form;
  form.keys = "q";
  form.turn = {0, 1, 3, 2};
  form.joins = false;
  // The queries are the keys.
  CHECK(CallOf(form) == "rewire.attention {scale=1.0}(%4, %4, %5)");
}

TEST_CASE("fuse-attention: hidden keys") {
  const float lowest = std::numeric_limits<float>::lowest();
  const float infinity = std::numeric_limits<float>::infinity();
  const auto form_of = [](float number, bool hides) {
    AttentionForm form;
    form.score = [=](onnx::GraphProto* graph) {
      AddFloats(graph, "number", {}, {number});
      onnx::TensorProto* mask = AddWeight(graph, "mask", onnx::TensorProto::BOOL, {5, 5});
      // The first key is always seen.
      for (int i = 0; i < 25; ++i) mask->add_int32_data((i % 5 == 0 || i % 5 <= i / 5) != hides ? 1 : 0);
      if (hides)
        AddNode(graph, "Where", {"mask", "number", "raw"}, "scores");
      else
        AddNode(graph, "Where", {"mask", "raw", "number"}, "scores");
    };
    return form;
  };
  for (const bool hides : {false, true}) {
    CHECK(CallOf(form_of(lowest, hides)).find("strict=1, hidden=-3.40282") != std::string::npos);
    CHECK(CallOf(form_of(-infinity, hides)).find("hidden") == std::string::npos);
    CHECK(CallOf(form_of(-infinity, hides)).find("strict=1") != std::string::npos);
    // Scores would not vanish beside it.
    CHECK(CallOf(form_of(-10000, hides)) == "");
    CHECK(CallOf(form_of(1e30F, hides)) == "");
  }
}

TEST_CASE("fuse-attention: a mask below a bias, but not above it") {
  const auto form_of = [](bool above) {
    AttentionForm form;
    form.score = [=](onnx::GraphProto* graph) {
      AddFloats(graph, "number", {}, {std::numeric_limits<float>::lowest()});
      AddFloats(graph, "row", {5}, Numbers(5));
      onnx::TensorProto* mask = AddWeight(graph, "mask", onnx::TensorProto::BOOL, {1, 1, 5, 5});
      for (int i = 0; i < 25; ++i) mask->add_int32_data(i % 5 <= i / 5 ? 1 : 0);
      if (above) AddNode(graph, "Add", {"raw", "row"}, "sum");
      AddNode(graph, "Where", {"mask", above ? "sum" : "raw", "number"}, above ? "scores" : "chosen");
      if (!above) AddNode(graph, "Add", {"row", "chosen"}, "scores");
    };
    return form;
  };
  // Two are left out; then come the bias and the mask.
  const std::string call = CallOf(form_of(false));
  CHECK(std::count(call.begin(), call.end(), '@') == 4);
  CHECK(CallOf(form_of(true)) == "");
}

TEST_CASE("fuse-attention: masks and biases of as many keys as there are, which only shows when it runs") {
  // As a decoder is exported: a window on a table of masks, and an input that hides keys.
  onnx::ModelProto model = ModelOf({1, 2, "L", 4});
  onnx::GraphProto* graph = model.mutable_graph();
  SetValue(graph->add_input(), "past", {1, 2, "P", 4});
  SetValue(graph->add_input(), "hides", {1, 1, 1, "T"});
  onnx::TensorProto* table = AddWeight(graph, "table", onnx::TensorProto::BOOL, {1, 1, 8, 8});
  for (int i = 0; i < 64; ++i) table->add_int32_data(i % 8 <= i / 8 ? 1 : 0);
  AddFloats(graph, "number", {}, {std::numeric_limits<float>::lowest()});
  AddInts(graph, "two", {2});
  AddInts(graph, "rows", {2});
  AddInts(graph, "columns", {3});
  AddInts(graph, "zero", {0});
  AddInt(AddNode(graph, "Concat", {"past", "x"}, "keys"), "axis", 2);
  for (const char* of : {"past", "keys"}) {
    AddNode(graph, "Shape", {of}, std::string(of) + ".shape");
    AddNode(graph, "Gather", {std::string(of) + ".shape", "two"}, std::string(of) + ".length");
  }
  AddNode(graph, "Slice", {"table", "past.length", "keys.length", "rows"}, "window");
  AddNode(graph, "Slice", {"window", "zero", "keys.length", "columns"}, "mask");
  Transpose(graph, "keys", {0, 1, 3, 2}, "k");
  AddNode(graph, "MatMul", {"x", "k"}, "raw");
  AddNode(graph, "Where", {"mask", "raw", "number"}, "chosen");
  AddNode(graph, "Add", {"chosen", "hides"}, "scores");
  AddInt(AddNode(graph, "Softmax", {"scores"}, "weights"), "axis", -1);
  AddNode(graph, "MatMul", {"weights", "keys"}, "y");
  const Outcome made = CompileProto(model);
  REQUIRE(made.message.empty());
  const auto is_attention = [](const KernelImport& kernel) { return kernel.name == "rewire.attention"; };
  CHECK(std::ranges::any_of(made.compiled.module.kernels, is_attention));
}

TEST_CASE("fuse-attention: matrices without heads") {
  onnx::ModelProto model = ModelOf({2, 4, 3});
  onnx::GraphProto* graph = model.mutable_graph();
  AddFloats(graph, "sixteenth", {}, {0.0625F});
  AddFloats(graph, "bias", {4, 1}, Numbers(4));
  AddNode(graph, "Mul", {"x", "sixteenth"}, "small");
  Transpose(graph, "small", {0, 2, 1}, "k");
  AddNode(graph, "MatMul", {"small", "k"}, "raw");
  SECTION("with a bias of two axes") { AddNode(graph, "Add", {"raw", "bias"}, "scores"); }
  SECTION("without") { AddNode(graph, "Identity", {"raw"}, "scores"); }
  AddInt(AddNode(graph, "Softmax", {"scores"}, "weights"), "axis", 2);
  AddNode(graph, "MatMul", {"weights", "small"}, "y");
  CHECK(CallOf(RunPass("fuse-attention", model, {2, 4, 3}).after) != "");
}

TEST_CASE("fuse-attention: a length that is open") {
  AttentionForm form;
  form.x = {1, "N", 6};
  form.cut = {1, -1, 2, 3};
  onnx::ModelProto model = Attention(form);
  model.mutable_graph()->mutable_initializer(3)->set_int64_data(1, 0);  // as long as it is
  CHECK(CallOf(RunPass("fuse-attention", model, {1, 7, 6}).after) != "");
}

TEST_CASE("fuse-attention: what only looks like it") {
  AttentionForm form;
  SECTION("a softmax over queries") { form.axis = 2; }
  SECTION("a factor for each head") { form.score = Steps({{"Mul", "by_head"}}); }
  SECTION("a factor on top of the bias") { form.score = Steps({{"Add", "bias"}, {"Mul", "two"}}); }
  SECTION("two biases") { form.score = Steps({{"Add", "bias"}, {"Add", "row"}}); }
  SECTION("a factor of 0") {
    form.score = [](onnx::GraphProto* graph) {
      AddFloats(graph, "nothing", {}, {0});
      AddNode(graph, "Mul", {"raw", "nothing"}, "scores");
    };
  }
  SECTION("scores that something else reads") {
    form.joins = false;
    form.score = [](onnx::GraphProto* graph) {
      AddNode(graph, "Identity", {"raw"}, "scores");
      AddNode(graph, "Abs", {"scores"}, "other");
      SetValue(graph->add_output(), "other", {});
    };
    onnx::ModelProto model = Attention(form);
    const Outcome made = CompileProto(model);
    REQUIRE(made.message.empty());
    for (const KernelImport& kernel : made.compiled.module.kernels) CHECK(kernel.name != "rewire.attention");
    return;
  }
  CHECK(CallOf(form) == "");
}

}  // namespace
}  // namespace rewire::test
