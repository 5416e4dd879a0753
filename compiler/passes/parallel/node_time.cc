// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/passes/parallel/node_time.h"

#include <algorithm>
#include <cstdint>

#include "rewire/compiler/ir/node_work.h"

namespace rewire::compiler {
namespace {

// Kernels split what is larger: simple work, and products (kernels/cpu/support/parallel.h and those that call
// it).
constexpr double kMostElements = 16384;
constexpr double kLeastSplitProducts = 262144;
// Figures of a processor with vectors of 256 bits. The last one is what a call takes beside its work.
constexpr double kNanosecondsOfElement = 0.1;
constexpr double kProductsOfNanosecond = 40;
constexpr double kNanosecondsOfCall = 60;
// An open dimension, where only the ratio of sizes counts.
constexpr std::int64_t kUsualSize = 64;

std::int64_t SizeOrUsual(const DimExpr& dim) {
  return dim.Bounds([](const std::string&) { return Interval{kUsualSize, kUsualSize}; }).least;
}

struct Time {
  double nanoseconds;
  bool splits;  // among threads
};

std::optional<Time> Estimate(const Graph& graph, const Node& node) {
  const std::optional<CallWork> work = WorkOf(graph, node, [](const DimExpr& dim) { return dim.constant(); });
  if (!work) return std::nullopt;
  if (work->products > 0) {
    return Time{
        kNanosecondsOfCall + work->products / kProductsOfNanosecond + work->written * kNanosecondsOfElement,
        work->products >= kLeastSplitProducts || work->written > kMostElements};
  }
  return Time{kNanosecondsOfCall + work->operations * kNanosecondsOfElement,
              std::max(work->most_read, work->written) > kMostElements};
}

}  // namespace

double ProductsOfInput(const Graph& graph, const Node& node) {
  const std::optional<CallWork> work = WorkOf(graph, node, SizeOrUsual);
  if (!work || work->products == 0) return 0;
  double read = 1;
  for (const DimExpr& dim : node.inputs.front()->type.dims) read *= static_cast<double>(SizeOrUsual(dim));
  return work->products / std::max(1.0, read);
}

std::optional<double> TimeOf(const Graph& graph, const Node& node) {
  const std::optional<Time> time = Estimate(graph, node);
  return time ? std::optional<double>(time->nanoseconds) : std::nullopt;
}

std::optional<double> TimeOfSmall(const Graph& graph, const Node& node) {
  const std::optional<Time> time = Estimate(graph, node);
  return time && !time->splits ? std::optional<double>(time->nanoseconds) : std::nullopt;
}

}  // namespace rewire::compiler
