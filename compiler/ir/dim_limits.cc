// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/ir/dim_limits.h"

#include "rewire/compiler/ir/symbol_definitions.h"

namespace rewire::compiler {

DimLimits::DimLimits(const Graph& graph) {
  for (const auto& [name, most] : graph.max_dims) symbols_[name] = {0, most};
  for (const auto& [name, dim] : SymbolDefinitions(graph)) {
    if (const std::optional<Interval> bounds = BoundsOf(dim)) symbols_.try_emplace(name, *bounds);
  }
}

std::optional<Interval> DimLimits::BoundsOf(const DimExpr& dim) const {
  bool limited = true;
  const Interval bounds = dim.Bounds([&](const std::string& name) {
    const auto known = symbols_.find(name);
    limited = limited && known != symbols_.end();
    return known == symbols_.end() ? Interval::FromZero() : known->second;
  });
  if (!limited || bounds.most == Interval::kNoMost) return std::nullopt;
  return LargerOf(bounds, Interval::Of(0));  // nothing of a negative size is allocated
}

std::optional<std::vector<std::int64_t>> DimLimits::MostOf(const Shape& dims) const {
  std::vector<std::int64_t> most;
  for (const DimExpr& dim : dims) {
    const std::optional<Interval> bounds = BoundsOf(dim);
    if (!bounds) return std::nullopt;
    most.push_back(bounds->most);
  }
  return most;
}

}  // namespace rewire::compiler
