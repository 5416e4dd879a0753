// SPDX-License-Identifier: Apache-2.0
#include "compiler/ir/dim_limits.h"

#include <algorithm>

namespace rewire::compiler {

DimLimits::DimLimits(const Graph& graph) {
  for (const auto& [name, most] : graph.max_dims) symbols_[name] = {0, most};
  Symbols symbols;
  for (const auto& [name, source] : graph.symbols()) {
    if (!graph.max_dims.contains(name)) symbols[source.value].emplace_back(name, source.axis);
  }
  Walk(graph.main, symbols);
}

void DimLimits::Walk(const Block& block, const Symbols& symbols) {
  for (const Node* node : block.nodes) {
    for (const Block& inner : node->blocks) Walk(inner, symbols);
    for (std::size_t i = 0; i < node->extents.size(); ++i) {
      const Node::Extent& extent = node->extents[i];
      const auto found = symbols.find(node->outputs[i]);
      if (extent.shape != nullptr || found == symbols.end()) continue;
      for (const auto& [name, axis] : found->second) {
        const auto bounds = axis < extent.dims.size() ? BoundsOf(extent.dims[axis]) : std::nullopt;
        if (bounds) symbols_[name] = *bounds;
      }
    }
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
