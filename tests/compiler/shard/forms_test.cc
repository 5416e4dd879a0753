// SPDX-License-Identifier: Apache-2.0
// Layers in the forms that models have: each is split, and gives what one process gives.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "rewire/kernels/contract/product.h"
#include "rewire/tests/compiler/shard/check_split.h"
#include "rewire/tests/compiler/shard/layers.h"

namespace rewire::test {
namespace {

void Import(onnx::ModelProto* model, const std::string& domain) {
  onnx::OperatorSetIdProto* set = model->add_opset_import();
  set->set_domain(domain);
  set->set_version(1);
}

// Weights of 4 or 8 bits in blocks of 16 rows.
void AddBlocked(Layers* add, const std::string& x, std::int64_t depth, std::int64_t columns,
                std::int64_t bits, bool zeros, bool bias, const std::string& output) {
  const std::int64_t blocks = depth / 16, bytes = 16 * bits / 8;
  const auto codes = [&](std::int64_t count) {
    std::string text;
    for (std::int64_t i = 0; i < count; ++i) text.push_back(static_cast<char>(add->random().Below(256)));
    return text;
  };
  AddWeight(add->graph(), output + ".codes", onnx::TensorProto::UINT8, {columns, blocks, bytes})
      ->set_raw_data(codes(columns * blocks * bytes));
  AddFloats(add->graph(), output + ".scales", {columns * blocks},
            add->random().Floats(columns * blocks, 0.02F));
  std::vector<std::string> inputs = {x, output + ".codes", output + ".scales"};
  if (zeros) {
    const std::int64_t of_column = (blocks * bits + 7) / 8;
    AddWeight(add->graph(), output + ".zeros", onnx::TensorProto::UINT8, {columns * of_column})
        ->set_raw_data(codes(columns * of_column));
  }
  if (zeros || bias) inputs.push_back(zeros ? output + ".zeros" : "");
  if (bias) {
    inputs.push_back("");
    inputs.push_back(add->Weight(output + ".bias", {columns}));
  }
  onnx::NodeProto* node = add->Node("MatMulNBits", inputs, output);
  node->set_domain("com.microsoft");
  AddInt(node, "K", depth);
  AddInt(node, "N", columns);
  AddInt(node, "bits", bits);
  AddInt(node, "block_size", 16);
}

TEST_CASE("weights of few bits are split along whole blocks") {
  const std::int64_t bits = GENERATE(4, 8);
  const bool zeros = GENERATE(false, true), bias = GENERATE(false, true);
  onnx::ModelProto model = ModelOfTokens(0);
  Import(&model, "com.microsoft");
  Layers add(&model, 3);
  AddBlocked(&add, "x", 64, 128, bits, zeros, bias, "up");
  add.Node("Relu", {"up"}, "relu");
  AddBlocked(&add, "relu", 128, 64, bits, zeros, bias, "y");
  CHECK(SplitOf(model, Tokens(3)) == "columns rows");
}

TEST_CASE("weights that DequantizeLinear makes are split with their scales") {
  const bool by_column = GENERATE(false, true);
  onnx::ModelProto model = ModelOfTokens(0);
  Layers add(&model, 3);
  const auto weight = [&](const std::string& name, std::int64_t depth, std::int64_t columns) {
    std::string codes;
    for (std::int64_t i = 0; i < depth * columns; ++i)
      codes.push_back(static_cast<char>(add.random().Below(256)));
    AddWeight(add.graph(), name + ".codes", onnx::TensorProto::INT8, {depth, columns})->set_raw_data(codes);
    std::vector<float> scales(static_cast<std::size_t>(by_column ? columns : 1));
    for (float& scale : scales) scale = 0.001F + 0.001F * std::abs(add.random().Next());
    AddFloats(add.graph(), name + ".scale", by_column ? std::vector{columns} : std::vector<std::int64_t>(),
              scales);
    AddInt(add.Node("DequantizeLinear", {name + ".codes", name + ".scale"}, name), "axis", 1);
  };
  weight("up", 64, 128);
  weight("down", 128, 64);
  add.Node("MatMul", {"x", "up"}, "hidden");
  add.Node("Relu", {"hidden"}, "relu");
  add.Node("MatMul", {"relu", "down"}, "y");
  const std::string split = SplitOf(model, Tokens(3), 1e-3);
  CHECK(split.find("columns") != std::string::npos);
  CHECK(split.find("rows") != std::string::npos);
}

TEST_CASE("weights that were folded from 8 bits stay in 8 bits on a rank") {
  onnx::ModelProto model = ModelOfTokens(0);
  Layers add(&model, 3);
  std::string codes;
  for (int i = 0; i < 64 * 64; ++i) codes.push_back(static_cast<char>(add.random().Below(256)));
  AddWeight(add.graph(), "codes", onnx::TensorProto::INT8, {64, 64})->set_raw_data(codes);
  AddFloats(add.graph(), "scale", {1, 64}, add.random().Floats(64, 0.002F));
  AddInt(add.Node("Cast", {"codes"}, "wide"), "to", onnx::TensorProto::FLOAT);
  add.Node("Mul", {"wide", "scale"}, "weights");
  add.Node("MatMul", {"x", "weights"}, "y");
  CHECK(SplitOf(model, Tokens(3)) == "columns");
  for (const compiler::Compiled& rank : CompileShards(model, 2).compiled) {
    CHECK(std::any_of(rank.module.kernels.begin(), rank.module.kernels.end(),
                      [](const KernelImport& kernel) { return kernel.name == names::kPackedMatMulBytes; }));
  }
}

TEST_CASE("Gemm: transposed weights, a factor of the bias, and the bias once behind the sum") {
  onnx::ModelProto model = EmptyModel();
  SetValue(model.mutable_graph()->add_input(), "x", {"rows", 64});
  SetValue(model.mutable_graph()->add_output(), "y", {"rows", 32});
  Layers add(&model, 3);
  add.Weight("w1", {128, 64});
  add.Weight("b1", {128});
  add.Weight("w2", {128, 32});
  add.Weight("b2", {1, 32});
  AddInt(add.Node("Gemm", {"x", "w1", "b1"}, "hidden"), "transB", 1);
  add.Node("Tanh", {"hidden"}, "tanh");
  onnx::NodeProto* second = add.Node("Gemm", {"tanh", "w2", "b2"}, "y");
  for (const auto& [name, value] : {std::pair("alpha", 0.5F), std::pair("beta", 3.0F)}) {
    onnx::AttributeProto* attribute = second->add_attribute();
    attribute->set_name(name);
    attribute->set_type(onnx::AttributeProto::FLOAT);
    attribute->set_f(value);
  }
  RandomNumbers random(4);
  CHECK(SplitOf(model, {{"x", RandomTensor(&random, {3, 64})}}) == "columns rows");
}

TEST_CASE("a table's columns and the last product's vocabulary are gathered") {
  onnx::ModelProto model = EmptyModel();
  SetValue(model.mutable_graph()->add_input(), "x", {1, 5});
  SetValue(model.mutable_graph()->add_output(), "y", {1, 5, 96});
  Layers add(&model, 3);
  AddInt(add.Node("Cast", {"x"}, "ids"), "to", onnx::TensorProto::INT64);
  add.Weight("table", {96, 64});
  add.Node("Gather", {"table", "ids"}, "embedded");
  AddInt(add.Node("Softmax", {"embedded"}, "soft"), "axis", -1);
  add.Weight("head", {64, 96});
  add.Node("MatMul", {"soft", "head"}, "y");
  Tensor ids = *Tensor::Make(DTypeOf<float>(), {1, 5});
  for (int i = 0; i < 5; ++i) ids.data<float>()[i] = static_cast<float>(17 * i);
  CHECK(SplitOf(model, {{"x", ids}}, 0) == "columns columns");
}

TEST_CASE("attention of several domains is split by heads") {
  SECTION("GroupQueryAttention with rotary positions and caches") {
    onnx::ModelProto model = ModelOfTokens(0);
    Import(&model, "com.microsoft");
    Layers add(&model, 3);
    onnx::GraphProto* graph = model.mutable_graph();
    SetValue(graph->add_input(), "past_key", {1, 2, "past", 16});
    SetValue(graph->add_input(), "past_value", {1, 2, "past", 16});
    SetValue(graph->add_output(), "key", {1, 2, "all", 16});
    SetValue(graph->add_output(), "value", {1, 2, "all", 16});
    AddWeight(graph, "lengths", onnx::TensorProto::INT32, {1, 1})->add_int32_data(7);
    AddWeight(graph, "total", onnx::TensorProto::INT32, {})->add_int32_data(8);
    add.Weight("cosines", {16, 8});
    add.Weight("sines", {16, 8});
    add.Linear("x", 64, 64, "q", false);
    add.Linear("x", 64, 32, "k", false);
    add.Linear("x", 64, 32, "v", false);
    onnx::NodeProto* node = add.Node(
        "GroupQueryAttention",
        {"q", "k", "v", "past_key", "past_value", "lengths", "total", "cosines", "sines"}, "attended");
    node->set_domain("com.microsoft");
    node->add_output("key");
    node->add_output("value");
    AddInt(node, "num_heads", 4);
    AddInt(node, "kv_num_heads", 2);
    AddInt(node, "do_rotary", 1);
    add.Linear("attended", 64, 64, "y");
    RandomNumbers random(4);
    NamedTensors inputs = Tokens(3);
    inputs.emplace_back("past_key", RandomTensor(&random, {1, 2, 5, 16}));
    inputs.emplace_back("past_value", RandomTensor(&random, {1, 2, 5, 16}));
    CHECK(SplitOf(model, inputs, 1e-4, {"past_key", "past_value"}).substr(0, 23) ==
          "columns columns columns");
  }
  SECTION("Attention of com.microsoft, with its weights side by side") {
    onnx::ModelProto model = ModelOfTokens(0);
    Import(&model, "com.microsoft");
    Layers add(&model, 3);
    add.Weight("qkv", {64, 192});
    add.Weight("qkv.bias", {192});
    onnx::NodeProto* node = add.Node("Attention", {"x", "qkv", "qkv.bias"}, "attended");
    node->set_domain("com.microsoft");
    AddInt(node, "num_heads", 4);
    add.Linear("attended", 64, 64, "y");
    CHECK(SplitOf(model, Tokens(5)) == "columns rows");
  }
  SECTION("heads and batch as one axis") {
    onnx::ModelProto model = ModelOfTokens(5);
    Layers add(&model, 3);
    const auto heads = [&](const std::string& name) {
      const std::string apart = add.Heads(add.Linear("x", 64, 64, name), 4, 16, name + ".heads");
      return add.Reshape(apart, {4, 5, 16}, name + ".folded");
    };
    const std::string q = heads("q"), k = heads("k"), v = heads("v");
    add.Node("MatMul", {q, add.Transpose(k, {0, 2, 1}, "keys")}, "scores");
    AddInt(add.Node("Softmax", {"scores"}, "soft"), "axis", -1);
    add.Node("MatMul", {"soft", v}, "values");
    add.Transpose(add.Reshape("values", {1, 4, 5, 16}, "apart"), {0, 2, 1, 3}, "back");
    add.Linear(add.Reshape("back", {1, 5, 64}, "joined"), 64, 64, "y");
    CHECK(SplitOf(model, Tokens(5)) == "columns columns columns rows");
  }
}

TEST_CASE("convolutions are split by channels, those of groups by groups") {
  onnx::ModelProto model = EmptyModel();
  SetValue(model.mutable_graph()->add_input(), "x", {1, 8, 6, 6});
  SetValue(model.mutable_graph()->add_output(), "y", {1, 8, 6, 6});
  Layers add(&model, 3);
  add.Weight("expand", {32, 8, 1, 1});
  add.Weight("expand.bias", {32});
  add.Weight("depthwise", {32, 1, 3, 3});
  add.Weight("depthwise.bias", {32});
  add.Weight("project", {8, 32, 1, 1});
  add.Weight("project.bias", {8});
  add.Node("Conv", {"x", "expand", "expand.bias"}, "expanded");
  add.Node("Relu", {"expanded"}, "relu");
  onnx::NodeProto* node = add.Node("Conv", {"relu", "depthwise", "depthwise.bias"}, "filtered");
  AddInt(node, "group", 32);
  AddIntList(node, "pads", {1, 1, 1, 1});
  add.Node("Conv", {"filtered", "project", "project.bias"}, "y");
  RandomNumbers random(4);
  CHECK(SplitOf(model, {{"x", RandomTensor(&random, {1, 8, 6, 6})}}) == "columns groups rows");
}

TEST_CASE("einsum is split as the product that it is") {
  onnx::ModelProto model = ModelOfTokens(3);
  Layers add(&model, 3);
  add.Weight("up", {64, 128});
  add.Weight("down", {128, 64});
  AddString(add.Node("Einsum", {"x", "up"}, "hidden"), "equation", "bld, df -> blf");
  add.Node("Relu", {"hidden"}, "relu");
  AddString(add.Node("Einsum", {"relu", "down"}, "y"), "equation", "blf,fd->bld");
  CHECK(SplitOf(model, Tokens(3)) == "columns rows");
}

TEST_CASE("layers in the branches of a condition are split") {
  onnx::ModelProto model = ModelOfTokens(3);
  Layers add(&model, 3);
  AddInts(add.graph(), "axes", {0, 1, 2});
  AddInt(add.Node("ReduceSum", {"x", "axes"}, "sum"), "keepdims", 0);
  AddFloats(add.graph(), "zero", {}, {0});
  add.Node("Greater", {"sum", "zero"}, "positive");
  for (const char* name : {"up", "down"}) add.Weight(name, {64, 64});
  onnx::NodeProto* node = add.Node("If", {"positive"}, "y");
  for (const char* branch : {"then_branch", "else_branch"}) {
    onnx::GraphProto* graph = AddGraph(node, branch);
    const std::string of = branch;
    AddNode(graph, "MatMul", {"x", "up"}, of + ".hidden");
    AddNode(graph, of == "then_branch" ? "Relu" : "Tanh", {of + ".hidden"}, of + ".active");
    AddNode(graph, "MatMul", {of + ".active", "down"}, of + ".y");
    SetValue(graph->add_output(), of + ".y", {1, 3, 64});
  }
  CHECK(SplitOf(model, Tokens(3)) == "columns rows columns rows");
}

TEST_CASE("what one rank cannot compute alone stays whole: recurrent layers say so") {
  onnx::ModelProto model = ModelOfTokens(3);
  Layers add(&model, 3);
  add.Weight("w", {1, 96, 64});
  add.Weight("r", {1, 96, 32});
  AddInt(add.Node("GRU", {"x", "w", "r"}, "states"), "hidden_size", 32);
  add.Linear(add.Reshape("states", {1, 3, 32}, "flat"), 32, 64, "y");
  CHECK(SplitOf(model, Tokens(3)) == "- columns");
  const ShardedModel sharded = CompileShards(model, 2);
  CHECK(sharded.compiled[1].shards.layers[0].reason == "calls of rewire.gru are not split");
}

}  // namespace
}  // namespace rewire::test
