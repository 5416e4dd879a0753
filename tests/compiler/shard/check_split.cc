// SPDX-License-Identifier: Apache-2.0
#include "rewire/tests/compiler/shard/check_split.h"

#include <algorithm>
#include <catch2/catch.hpp>

namespace rewire::test {

SplitModel CheckSplit(const onnx::ModelProto& model, const NamedTensors& inputs, double most,
                      const std::vector<std::string>& caches) {
  const RankResult whole = RunWhole(model, inputs);
  INFO(whole.error);
  REQUIRE(whole.error.empty());
  const ShardedModel sharded = CompileShards(model, 2);
  INFO(sharded.error);
  REQUIRE(sharded.error.empty());
  SplitModel split{"", sharded.compiled[0].shards, {}};
  CHECK(split.report.split_inputs == caches);
  CHECK(split.report.rank_bytes * 2 <= split.report.split_bytes);
  std::vector<NamedTensors> of_ranks(2, inputs);
  for (std::int64_t rank = 0; rank < 2; ++rank) {
    for (auto& [name, tensor] : of_ranks[static_cast<std::size_t>(rank)]) {
      if (std::find(caches.begin(), caches.end(), name) != caches.end()) tensor = PartOf(tensor, 1, rank, 2);
    }
  }
  const std::vector<RankResult> results = RunRanks(sharded.executables, of_ranks, &split.exchanged);
  for (std::int64_t rank = 0; rank < 2; ++rank) {
    const RankResult& result = results[static_cast<std::size_t>(rank)];
    INFO("rank " << rank << ": " << result.error);
    REQUIRE(result.error.empty());
    for (const auto& [name, tensor] : result.outputs) {
      const Tensor& expected = whole.outputs.at(name);
      const bool part = tensor.view().size() != expected.view().size();
      CHECK(Difference(tensor, part ? PartOf(expected, 1, rank, 2) : expected) <= most);
    }
  }
  for (const ShardedLayer& layer : split.report.layers)
    split.layers += (split.layers.empty() ? "" : " ") + (layer.split.empty() ? "-" : layer.split);
  return split;
}

std::string SplitOf(const onnx::ModelProto& model, const NamedTensors& inputs, double most,
                    const std::vector<std::string>& caches) {
  return CheckSplit(model, inputs, most, caches).layers;
}

NamedTensors Tokens(std::int64_t length) {
  RandomNumbers random(11);
  return {{"x", RandomTensor(&random, {1, length, 64})}};
}

}  // namespace rewire::test
