// SPDX-License-Identifier: Apache-2.0
// One tensor as the table of embeddings and as the last product of a language model.
#include <catch2/catch.hpp>

#include "rewire/tests/compiler/shard/check_split.h"

namespace rewire::test {
namespace {

// MatMul needs the table transposed, which makes another constant of it.
enum class Product { kMatMul, kGemm };

// Positions x of words, as floats or int32, that become embeddings and then a number for each word.
onnx::ModelProto Tied(std::int64_t words, Product product = Product::kGemm,
                      onnx::TensorProto::DataType positions = onnx::TensorProto::INT64) {
  onnx::ModelProto model = EmptyModel();
  onnx::GraphProto* graph = model.mutable_graph();
  SetValue(graph->add_input(), "x", {5});
  SetValue(graph->add_output(), "y", {5, words});
  Layers add(&model, 3);
  AddInt(add.Node("Cast", {"x"}, "ids"), "to", positions);
  add.Weight("table", {words, 64});
  add.Node("Gather", {"table", "ids"}, "embedded");
  AddInt(add.Node("Softmax", {"embedded"}, "soft"), "axis", -1);
  if (product == Product::kGemm) {
    AddInt(add.Node("Gemm", {"soft", "table"}, "y"), "transB", 1);
  } else {
    add.Node("MatMul", {"soft", add.Transpose("table", {1, 0}, "head")}, "y");
  }
  return model;
}

NamedTensors Words(const std::vector<float>& positions) {
  Tensor x = *Tensor::Make(DTypeOf<float>(), {static_cast<std::int64_t>(positions.size())});
  for (std::size_t i = 0; i < positions.size(); ++i) x.data<float>()[i] = positions[i];
  return {{"x", x}};
}

TEST_CASE("a table that is also the last product is cut by rows for both") {
  const auto positions = GENERATE(onnx::TensorProto::INT64, onnx::TensorProto::INT32);
  // Negative positions count from the end.
  const SplitModel split = CheckSplit(Tied(96, Product::kGemm, positions), Words({0, 47, 48, 95, -1}), 0);
  CHECK(split.layers == "rows columns");
  CHECK(split.report.split_bytes == 96 * 64 * sizeof(float));
  CHECK(split.exchanged.all_reduces == 1);
  CHECK(split.exchanged.all_gathers == 1);
}

TEST_CASE("where the ranks do not divide the words, both are cut by columns of the table") {
  const SplitModel split = CheckSplit(Tied(97, Product::kGemm), Words({0, 47, 48, 96, -97}));
  CHECK(split.layers == "columns rows");
  CHECK(split.report.split_bytes == 97 * 64 * sizeof(float));
}

TEST_CASE("a table and its transpose are two constants, each of which is cut") {
  const SplitModel split = CheckSplit(Tied(96, Product::kMatMul), Words({0, 47, 48, 95, -1}), 0);
  CHECK(split.layers == "columns columns");
  CHECK(split.report.split_bytes == 2 * 96 * 64 * sizeof(float));
}

TEST_CASE("a position outside of a table that is cut by rows is refused by all ranks") {
  const onnx::ModelProto model = Tied(96);
  const ShardedModel sharded = CompileShards(model, 2);
  REQUIRE(sharded.error.empty());
  for (const float position : {96.0F, -97.0F}) {
    const NamedTensors inputs = Words({0, 1, position, 3, 4});
    for (const RankResult& result : RunRanks(sharded.executables, {inputs, inputs}))
      CHECK(result.error.find(std::to_string(static_cast<int>(position))) != std::string::npos);
  }
}

TEST_CASE("a table stays whole with layers that need all of it") {
  onnx::ModelProto model = Tied(97);
  // Neither 97 nor 63 can be halved.
  model.mutable_graph()->clear_initializer();
  Layers(&model, 3).Weight("table", {97, 63});
  CHECK(SplitOf(model, Words({0, 1, 2, 3, 4}), 0) == "- -");
}

TEST_CASE("a product whose columns the ranks do not divide is split by its rows") {
  onnx::ModelProto model = ModelOfTokens(3);
  Layers add(&model, 3);
  add.Linear("x", 64, 33, "odd");
  add.Linear("odd", 33, 64, "y");
  CHECK(SplitOf(model, Tokens(3)) == "rows columns");
}

}  // namespace
}  // namespace rewire::test
