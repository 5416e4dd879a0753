// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/emit/uses.h"

#include <limits>

namespace rewire::compiler {
namespace {

constexpr std::size_t kAlways = std::numeric_limits<std::size_t>::max();

}  // namespace

Uses::Uses(const Graph& graph) { Walk(graph.main); }

void Uses::Read(const Value* value) {
  if (value == nullptr) return;
  if (value->IsConstant()) {
    if (seen_constants_.insert(value).second) constants_.push_back(value);
    return;
  }
  const auto home = home_.find(value);
  if (home == home_.end()) {
    if (seen_constants_.insert(value).second) computed_.push_back(value);
    return;
  }
  for (const auto& [block, index] : path_) {
    if (block == home->second) blocks_[block].last[value] = index == kAlways ? kAlways : index + 1;
  }
}

void Uses::Walk(const Block& block) {
  path_.emplace_back(&block, 0);
  BlockUses& uses = blocks_[&block];
  for (const Value* parameter : block.parameters) {
    home_[parameter] = &block;
    uses.last[parameter] = 0;
  }
  for (std::size_t i = 0; i < block.nodes.size(); ++i) {
    const Node& node = *block.nodes[i];
    path_.back().second = i;
    for (const Value* input : node.inputs) Read(input);
    for (const Node::Extent& extent : node.extents) {
      Read(extent.shape);
      if (extent.shape != nullptr) continue;
      for (const DimExpr& dim : extent.dims) dim.CollectSymbols(&symbols_);
    }
    for (const Block& inner : node.blocks) Walk(inner);
    for (const Value* output : node.outputs) {
      home_[output] = &block;
      blocks_[&block].last[output] = i + 1;
    }
  }
  path_.back().second = kAlways;
  for (const Value* result : block.results) Read(result);
  path_.pop_back();

  BlockUses& done = blocks_[&block];
  done.dying.resize(block.nodes.size());
  for (const auto& [value, last] : done.last) {
    if (last != 0 && last != kAlways) done.dying[last - 1].push_back(value);
  }
}

const std::vector<const Value*>& Uses::DyingAfter(const Block& block, std::size_t index) const {
  return blocks_.at(&block).dying[index];
}

}  // namespace rewire::compiler
