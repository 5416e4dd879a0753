// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/shard/costs.h"

#include <algorithm>

#include "rewire/base/dtype.h"
#include "rewire/compiler/ir/node_work.h"

namespace rewire::compiler {
namespace {

constexpr double kProductsPerSecond = 2e10;
constexpr double kOperationsPerSecond = 1e9;
constexpr double kReadBytesPerSecond = 1e10;
constexpr double kExchangedBytesPerSecond = 4e9;
constexpr double kSecondsOfCall = 1e-5;  // until all ranks have met

}  // namespace

std::int64_t CountedSize(const Graph& graph, const DimExpr& dim) {
  const DimExpr counted = dim.Replaced([&](const std::string& name) -> std::optional<DimExpr> {
    const auto limit = graph.max_dims.find(name);
    return DimExpr(limit == graph.max_dims.end() ? 1 : limit->second);
  });
  return std::max<std::int64_t>(counted.constant().value_or(1), 0);
}

double CountedBytes(const Graph& graph, const Value& value) {
  double bytes = static_cast<double>(ElementBytes(value.type.dtype));
  for (const DimExpr& dim : value.type.dims) bytes *= static_cast<double>(CountedSize(graph, dim));
  return bytes;
}

double OperationsOf(const Graph& graph, const Node& node) {
  const auto work =
      WorkOf(graph, node, [&](const DimExpr& dim) { return std::optional(CountedSize(graph, dim)); });
  if (!work) return 0;
  return work->products > 0 ? work->products : work->operations;
}

double SecondsOf(const Graph& graph, const Node& node, std::uint64_t weight_bytes) {
  const auto work =
      WorkOf(graph, node, [&](const DimExpr& dim) { return std::optional(CountedSize(graph, dim)); });
  double seconds = 0;
  if (work) seconds = work->products / kProductsPerSecond + work->operations / kOperationsPerSecond;
  return std::max(seconds, static_cast<double>(weight_bytes) / kReadBytesPerSecond);
}

double SecondsOfGather(double bytes, std::int64_t ranks) {
  const auto others = static_cast<double>(ranks - 1);
  return kSecondsOfCall + bytes * others / static_cast<double>(ranks) / kExchangedBytesPerSecond;
}

// As a gather behind a scatter.
double SecondsOfReduce(double bytes, std::int64_t ranks) {
  const auto others = static_cast<double>(ranks - 1);
  return kSecondsOfCall + 2 * bytes * others / static_cast<double>(ranks) / kExchangedBytesPerSecond;
}

}  // namespace rewire::compiler
