// SPDX-License-Identifier: Apache-2.0
// Models that are split over ranks give what one process gives, and each rank holds its part of the weights.
#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>

#include "rewire/tests/compiler/shard/layers.h"

namespace rewire::test {
namespace {

// Random inputs of the model's sizes; `sizes` are those of open dimensions.
NamedTensors InputsOf(const onnx::ModelProto& model, const std::map<std::string, std::int64_t>& sizes) {
  RandomNumbers random(7);
  NamedTensors inputs;
  for (const onnx::ValueInfoProto& input : model.graph().input()) {
    std::vector<std::int64_t> shape;
    for (const auto& dim : input.type().tensor_type().shape().dim())
      shape.push_back(dim.has_dim_param() ? sizes.at(dim.dim_param()) : dim.dim_value());
    inputs.emplace_back(input.name(), RandomTensor(&random, shape));
  }
  return inputs;
}

struct Compared {
  ShardedModel sharded;
  Exchanged exchanged;
  double difference = 0;  // the largest of all outputs
};

// Runs the model whole and on so many ranks. Inputs and outputs that are split along `axis` are caches.
Compared Compare(const onnx::ModelProto& model, std::int64_t ranks, ShardGoal goal = ShardGoal::kMemory,
                 std::int64_t axis = 1) {
  const NamedTensors inputs = InputsOf(model, {{"length", 5}, {"past", 3}});
  const RankResult whole = RunWhole(model, inputs);
  INFO(whole.error);
  REQUIRE(whole.error.empty());
  Compared compared;
  compared.sharded = CompileShards(model, ranks, 1, goal);
  INFO(compared.sharded.error);
  REQUIRE(compared.sharded.error.empty());
  const std::vector<std::string>& split = compared.sharded.compiled[0].shards.split_inputs;
  std::vector<NamedTensors> of_ranks(static_cast<std::size_t>(ranks), inputs);
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    for (auto& [name, tensor] : of_ranks[static_cast<std::size_t>(rank)]) {
      if (std::find(split.begin(), split.end(), name) != split.end())
        tensor = PartOf(tensor, axis, rank, ranks);
    }
  }
  const std::vector<RankResult> results =
      RunRanks(compared.sharded.executables, of_ranks, &compared.exchanged);
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    const RankResult& result = results[static_cast<std::size_t>(rank)];
    INFO("rank " << rank << ": " << result.error);
    REQUIRE(result.error.empty());
    REQUIRE(result.outputs.size() == whole.outputs.size());
    for (const auto& [name, tensor] : result.outputs) {
      const Tensor& expected = whole.outputs.at(name);
      const bool part = tensor.view().size() != expected.view().size();
      compared.difference = std::max(
          compared.difference, Difference(tensor, part ? PartOf(expected, axis, rank, ranks) : expected));
    }
  }
  return compared;
}

// Each rank's file has at most its part of the weights and a twentieth.
void CheckFiles(const onnx::ModelProto& model, const Compared& compared) {
  const auto ranks = static_cast<double>(compared.sharded.executables.size());
  for (const compiler::Compiled& compiled : compared.sharded.compiled) {
    const ShardReport& report = compiled.shards;
    CHECK(static_cast<double>(report.rank_bytes) <= static_cast<double>(report.split_bytes) / ranks);
    CHECK(static_cast<double>(compiled.constant_bytes) <=
          1.05 * static_cast<double>(report.split_bytes) / ranks +
              static_cast<double>(CompileProto(model).compiled.constant_bytes - report.split_bytes));
    CHECK(report.rank_operations <= 0.6 * report.split_operations);
  }
}

std::string NodeSplitOf(const Compared& compared, const std::string& node) {
  for (const ShardedLayer& layer : compared.sharded.compiled[0].shards.layers) {
    if (layer.node.find("'" + node + "'") != std::string::npos) return layer.split;
  }
  return "not there";
}

TEST_CASE("an encoder on ranks: heads and hidden layers are split, with two sums a layer") {
  const std::int64_t ranks = GENERATE(2, 4);
  const onnx::ModelProto model = Encoder(2);
  const Compared compared = Compare(model, ranks);
  CHECK(compared.difference < 1e-4);
  CHECK(compared.exchanged.all_reduces == 4);
  CHECK(compared.exchanged.all_gathers == 0);
  CheckFiles(model, compared);
  for (const char* node : {"q_0.product", "k_0.product", "v_0.product", "up_1.product"})
    CHECK(NodeSplitOf(compared, node) == "columns");
  for (const char* node : {"out_0.product", "down_1.product"}) CHECK(NodeSplitOf(compared, node) == "rows");
  CHECK(compared.sharded.compiled[0].shards.all_reduces == 4);
}

TEST_CASE("a decoder on ranks: each has the heads of its queries in its caches") {
  const std::int64_t ranks = GENERATE(2, 4);
  const onnx::ModelProto model = Decoder(2);
  const Compared compared = Compare(model, ranks);
  CHECK(compared.difference < 1e-4);
  CHECK(compared.exchanged.all_reduces == 4);
  CHECK(compared.exchanged.all_gathers == 0);
  CHECK(compared.sharded.compiled[0].shards.split_inputs ==
        std::vector<std::string>{"past_key_0", "past_value_0", "past_key_1", "past_value_1"});
  const Function& main = compared.sharded.compiled[0].module.functions[0];
  CHECK(main.inputs[1].type.nodes[0].dims[1] == 4 / ranks);
  CheckFiles(model, compared);
}

TEST_CASE("experts on ranks: each has some of them whole") {
  const std::int64_t ranks = GENERATE(2, 4);
  const onnx::ModelProto model = Experts();
  const Compared compared = Compare(model, ranks);
  CHECK(compared.difference < 1e-4);
  CHECK(compared.exchanged.all_reduces == 1);
  CHECK(NodeSplitOf(compared, "hidden") == "groups");
  CHECK(NodeSplitOf(compared, "outputs") == "groups");
}

TEST_CASE("what is split by columns alone is equal to the bit") {
  onnx::ModelProto model = ModelOfTokens(0);
  Layers add(&model, 3);
  // The sum over columns comes after all of them have been gathered.
  add.Linear("x", 64, 64, "first");
  add.Node("Tanh", {"first"}, "tanh");
  add.Norm("tanh", 64, "y");
  const Compared compared = Compare(model, GENERATE(2, 4));
  CHECK(compared.difference == 0);
  CHECK(compared.exchanged.all_gathers == 1);
  CHECK(compared.exchanged.all_reduces == 0);
}

TEST_CASE(
    "a layer whose exchange takes longer than its part of computing stays whole, and the report says so") {
  const onnx::ModelProto model = Encoder(1);
  const Compared compared = Compare(model, 2, ShardGoal::kTime);
  CHECK(compared.difference == 0);
  CHECK(compared.exchanged.all_reduces + compared.exchanged.all_gathers == 0);
  const ShardReport& report = compared.sharded.compiled[0].shards;
  REQUIRE(report.layers.size() == 6);
  for (const ShardedLayer& layer : report.layers) {
    CHECK(layer.split.empty());
    CHECK(layer.reason.find("us of computing and exchanges take") != std::string::npos);
  }
}

TEST_CASE("a large layer is split for time") {
  onnx::ModelProto model = EmptyModel();
  SetValue(model.mutable_graph()->add_input(), "x", {1, 512});
  SetValue(model.mutable_graph()->add_output(), "y", {1, 512});
  Layers add(&model, 5);
  add.Linear("x", 512, 2048, "up");
  add.Node("Relu", {"up"}, "relu");
  add.Linear("relu", 2048, 512, "y");
  const Compared compared = Compare(model, 2, ShardGoal::kTime);
  CHECK(compared.difference < 1e-4);
  CHECK(compared.exchanged.all_reduces == 1);
  CheckFiles(model, compared);
}

TEST_CASE("ranks that do not divide a layer leave it whole, and the report says so") {
  const Compared compared = Compare(Encoder(1), 3);
  CHECK(compared.difference == 0);
  CHECK(compared.sharded.compiled[0].shards.layers[0].reason ==
        "3 ranks divide no axis of its weights that its inputs leave");
}

TEST_CASE("numbers of ranks that cannot be are refused by name") {
  const onnx::ModelProto model = Encoder(1);
  compiler::CompileOptions options;
  const auto message = [&] { return CompileProto(model, options).message; };
  options.shards = 0;
  CHECK(message() == "model: shards is 0, expected 1 to 1024");
  options.shards = 2;
  options.rank = 2;
  CHECK(message() == "model: rank is 2, expected 0 to 1");
  options.rank = 0;
  options.stages = 2;
  CHECK(
      message() ==
      "model: 2 shards and 2 stages: the compiler splits a model in one of these ways; leave one of them 1");
  options.stages = 1;
  options.precision = Precision::kBf16;
  CHECK(message() == "model: a program of several ranks needs the model's own precision, not int8 or bf16");
  options.precision = Precision::kModel;
  options.all_parameters = true;
  CHECK(message() ==
        "model: a program of several ranks holds its part of the weights, so it has no parameters");
}

// For tests/integrations/collective/sharded.py, into the working directory.
TEST_CASE("models of jobs are written", "[.]") {
  for (const auto& [name, model] : {std::pair("encoder", Encoder(2)), std::pair("decoder", Decoder(2)),
                                    std::pair("experts", Experts()), std::pair("towers", Towers())}) {
    std::ofstream file(std::string(name) + ".onnx", std::ios::binary);
    CHECK(model.SerializeToOstream(&file));
  }
}

TEST_CASE("a rank that fails is an error on the others") {
  const onnx::ModelProto model = Encoder(1);
  const ShardedModel sharded = CompileShards(model, 2);
  REQUIRE(sharded.error.empty());
  const std::vector<RankResult> results =
      RunRanks(sharded.executables, {InputsOf(model, {}), NamedTensors()});
  CHECK(results[0].error.find("another rank has ended") != std::string::npos);
  CHECK(results[1].error.find("x") != std::string::npos);
}

}  // namespace
}  // namespace rewire::test
