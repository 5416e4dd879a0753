// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/shard/shard.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "rewire/compiler/passes/passes.h"
#include "rewire/compiler/shard/plan.h"
#include "rewire/compiler/shard/rewrite.h"

namespace rewire::compiler {
namespace {

// More ranks than any job has.
constexpr std::int64_t kMostRanks = 1024;

}  // namespace

Status CheckRanks(const CompileOptions& options) {
  const auto invalid = [](const std::string& what) { return Fail(StatusCode::kInvalidArgument, what); };
  for (const auto& [name, count] :
       {std::pair("shards", options.shards), std::pair("stages", options.stages)}) {
    if (count < 1 || count > kMostRanks)
      return invalid(fmt::format("{} is {}, expected 1 to {}", name, count, kMostRanks));
  }
  if (options.shards > 1 && options.stages > 1) {
    return invalid(
        fmt::format("{} shards and {} stages: the compiler splits a model in one of these ways; "
                    "leave one of them 1",
                    options.shards, options.stages));
  }
  const std::int64_t ranks = std::max(options.shards, options.stages);
  if (options.rank < 0 || options.rank >= ranks)
    return invalid(fmt::format("rank is {}, expected 0 to {}", options.rank, ranks - 1));
  if (ranks == 1) return {};
  if (options.precision != Precision::kModel)
    return invalid("a program of several ranks needs the model's own precision, not int8 or bf16");
  if (options.all_parameters || !options.parameters.empty())
    return invalid("a program of several ranks holds its part of the weights, so it has no parameters");
  return {};
}

std::string RankText(const CompileOptions& options) {
  if (options.shards > 1) return fmt::format("{} of {} shards", options.rank, options.shards);
  if (options.stages > 1) return fmt::format("{} of {} stages", options.rank, options.stages);
  return "";
}

ShardReport ShardGraph(const CompileOptions& options, Graph* graph) {
  if (options.shards == 1) return {};
  RemoveDeadCode(graph);
  ShardPlan plan = PlanShards(*graph, options.shards, options.shard_goal);
  RewriteForRank(graph, plan, options.rank);
  RemoveDeadCode(graph);
  if (options.dump) options.dump("split", GraphText(*graph));
  return std::move(plan.report);
}

}  // namespace rewire::compiler
