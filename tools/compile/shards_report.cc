// SPDX-License-Identifier: Apache-2.0
#include "rewire/tools/compile/shards_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>

#include "rewire/tools/io/units.h"

namespace rewire::tools {

std::string PathOfRank(const std::string& path, std::int64_t rank) {
  const std::filesystem::path whole(path);
  const std::string name = fmt::format("{}.{}{}", whole.stem().string(), rank, whole.extension().string());
  return (whole.parent_path() / name).string();
}

std::string ShardsText(const CompileReport& report, std::int64_t shards, std::int64_t stages) {
  const ShardReport& split = report.shards;
  if (stages > 1) {
    return fmt::format("the stage takes about {:.0f} % of the time of all {}\n",
                       split.pipeline_seconds > 0 ? 100 * split.stage_seconds / split.pipeline_seconds : 0,
                       stages);
  }
  std::string text;
  for (const ShardedLayer& layer : split.layers) {
    if (layer.split.empty()) {
      text += fmt::format("  {}: whole, {}: {}\n", layer.node, BytesText(layer.weight_bytes), layer.reason);
    } else {
      text += fmt::format("  {}: split by {}, {} of {}\n", layer.node, layer.split,
                          BytesText(layer.rank_bytes), BytesText(layer.weight_bytes));
    }
  }
  if (split.split_bytes == 0)
    return text + fmt::format("nothing is split: each of {} ranks has all\n", shards);
  text += fmt::format(
      "each of {} ranks has {} of the {} of split weights; a run has {} all-reduces and {} all-gathers of "
      "{}\n",
      shards, BytesText(split.rank_bytes), BytesText(split.split_bytes), split.all_reduces, split.all_gathers,
      BytesText(split.exchanged_bytes));
  if (!split.split_inputs.empty())
    text += fmt::format("a rank has its heads of the inputs {}\n", fmt::join(split.split_inputs, ", "));
  return text;
}

nlohmann::ordered_json ShardsJson(const CompileReport& report) {
  using Json = nlohmann::ordered_json;
  const ShardReport& split = report.shards;
  Json layers = Json::array();
  for (const ShardedLayer& layer : split.layers) {
    layers.push_back({{"node", layer.node},
                      {"split", layer.split},
                      {"reason", layer.reason},
                      {"weight_bytes", layer.weight_bytes},
                      {"rank_bytes", layer.rank_bytes}});
  }
  return {{"layers", layers},
          {"split_bytes", split.split_bytes},
          {"rank_bytes", split.rank_bytes},
          {"split_operations", split.split_operations},
          {"rank_operations", split.rank_operations},
          {"all_reduces", split.all_reduces},
          {"all_gathers", split.all_gathers},
          {"exchanged_bytes", split.exchanged_bytes},
          {"split_inputs", split.split_inputs},
          {"stage_seconds", split.stage_seconds},
          {"pipeline_seconds", split.pipeline_seconds}};
}

}  // namespace rewire::tools
