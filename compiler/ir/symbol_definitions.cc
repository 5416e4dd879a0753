// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/ir/symbol_definitions.h"

#include <unordered_map>

namespace rewire::compiler {
namespace {

struct Collector {
  // By the value in whose shape they stand: names and axes.
  std::unordered_map<const Value*, std::vector<std::pair<std::string, std::uint32_t>>> symbols;
  std::vector<std::pair<std::string, DimExpr>> definitions;

  void Walk(const Block& block) {
    for (const Node* node : block.nodes) {
      for (const Block& inner : node->blocks) Walk(inner);
      for (std::size_t i = 0; i < node->extents.size(); ++i) {
        const Node::Extent& extent = node->extents[i];
        const auto found = symbols.find(node->outputs[i]);
        if (extent.shape != nullptr || found == symbols.end()) continue;
        for (const auto& [name, axis] : found->second) {
          if (axis < extent.dims.size()) definitions.emplace_back(name, extent.dims[axis]);
        }
      }
    }
  }
};

}  // namespace

std::vector<std::pair<std::string, DimExpr>> SymbolDefinitions(const Graph& graph) {
  Collector collector;
  for (const auto& [name, source] : graph.symbols())
    collector.symbols[source.value].emplace_back(name, source.axis);
  collector.Walk(graph.main);
  return std::move(collector.definitions);
}

}  // namespace rewire::compiler
