// SPDX-License-Identifier: Apache-2.0
// Models that are cut into a pipeline give what one process gives, to the bit.
#include <catch2/catch.hpp>

#include "rewire/tests/compiler/shard/layers.h"

namespace rewire::test {
namespace {

// Runs the stages, each over the inputs that it has, and checks that together they give each output once.
void CheckStages(const onnx::ModelProto& model, const NamedTensors& inputs, std::int64_t stages) {
  const RankResult whole = RunWhole(model, inputs);
  INFO(whole.error);
  REQUIRE(whole.error.empty());
  const ShardedModel cut = CompileShards(model, 1, stages);
  INFO(cut.error);
  REQUIRE(cut.error.empty());
  std::vector<NamedTensors> of_stages;
  for (const compiler::Compiled& compiled : cut.compiled) {
    NamedTensors& own = of_stages.emplace_back();
    for (const auto& [name, tensor] : inputs) {
      for (const auto& input : compiled.module.functions[0].inputs) {
        if (input.name == name) own.emplace_back(name, tensor);
      }
    }
  }
  std::map<std::string, Tensor> outputs;
  for (RankResult& result : RunRanks(cut.executables, of_stages)) {
    INFO(result.error);
    REQUIRE(result.error.empty());
    for (const auto& [name, tensor] : result.outputs) CHECK(outputs.emplace(name, tensor).second);
  }
  REQUIRE(outputs.size() == whole.outputs.size());
  for (const auto& [name, tensor] : outputs) CHECK(Difference(tensor, whole.outputs.at(name)) == 0);
}

TEST_CASE("an encoder in stages gives the same to the bit, and each stage has its part of the weights") {
  const std::int64_t stages = GENERATE(2, 4);
  const onnx::ModelProto model = Encoder(4);
  RandomNumbers random(3);
  CheckStages(model, {{"x", RandomTensor(&random, {1, 6, 64})}}, stages);
  const ShardedModel cut = CompileShards(model, 1, stages);
  const auto whole = static_cast<double>(CompileProto(model).compiled.constant_bytes);
  double sum = 0;
  for (const compiler::Compiled& compiled : cut.compiled) {
    const auto bytes = static_cast<double>(compiled.constant_bytes);
    CHECK(bytes <= 1.4 * whole / static_cast<double>(stages));
    CHECK(compiled.shards.stage_seconds <=
          1.4 * compiled.shards.pipeline_seconds / static_cast<double>(stages));
    sum += bytes;
  }
  CHECK(sum <= 1.05 * whole);
}

TEST_CASE("a decoder in stages: sizes that a run gives are passed on, and caches stay with their layers") {
  const onnx::ModelProto model = Decoder(2);
  RandomNumbers random(3);
  NamedTensors inputs = {{"x", RandomTensor(&random, {1, 5, 64})}};
  for (const char* name : {"past_key_0", "past_value_0", "past_key_1", "past_value_1"})
    inputs.emplace_back(name, RandomTensor(&random, {1, 4, 3, 16}));
  CheckStages(model, inputs, 2);
  const ShardedModel cut = CompileShards(model, 1, 2);
  const auto has = [&](std::size_t stage, const std::string& name) {
    for (const auto& input : cut.compiled[stage].module.functions[0].inputs) {
      if (input.name == name) return true;
    }
    return false;
  };
  CHECK(has(0, "past_key_0"));
  CHECK_FALSE(has(1, "past_key_0"));
  CHECK(has(1, "past_key_1"));
  CHECK_FALSE(has(0, "past_key_1"));
  CHECK_FALSE(has(1, "x"));
}

TEST_CASE("a value that a later stage reads skips those between") {
  onnx::ModelProto model = ModelOfTokens(3);
  Layers add(&model, 2);
  add.Linear("x", 64, 64, "first");
  add.Linear(add.Linear(add.Linear("first", 64, 64, "second"), 64, 64, "third"), 64, 64, "fourth");
  add.Add("first", "fourth", "y");
  RandomNumbers random(3);
  CheckStages(model, {{"x", RandomTensor(&random, {1, 3, 64})}}, 4);
}

TEST_CASE("a program with too few places for its stages is refused") {
  onnx::ModelProto model = ModelOfTokens(3);
  Layers add(&model, 2);
  add.Node("Relu", {"x"}, "relu");
  add.Node("Neg", {"relu"}, "y");
  CHECK(
      CompileShards(model, 1, 3).error ==
      "model: 3 stages need 2 cuts, and the program has 0 places for one: a stage passes on tensors of known "
      "rank alone; ask for fewer stages");
}

}  // namespace
}  // namespace rewire::test
