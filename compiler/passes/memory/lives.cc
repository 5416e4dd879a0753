// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/passes/memory/lives.h"

#include <algorithm>

namespace rewire::compiler {

Lives::Lives(const Graph& graph) {
  Walk(graph.main);
  for (auto& [value, memory] : shared_with_) memory = RootOf(memory);
  for (const Value* result : graph.main.results) Keep(result, true);
  for (const auto& [value, node] : last_) {
    std::size_t& end = ends_[MemoryOf(value)];
    end = std::max(end, spans_.at(node).end);
  }
  for (const Value* value : forever_) ends_[MemoryOf(value)] = next_;
  std::unordered_set<const Value*> kept;
  for (const Value* value : kept_) kept.insert(MemoryOf(value));
  kept_ = std::move(kept);
}

std::size_t Lives::EndOf(const Value* value) const {
  const auto found = ends_.find(MemoryOf(value));
  return found == ends_.end() ? 0 : found->second;
}

bool Lives::DiesAt(const Value* value, const Node* node) const {
  const auto found = last_.find(value);
  return found != last_.end() && found->second == node && !forever_.contains(value);
}

void Lives::Keep(const Value* value, bool forever) {
  if (value == nullptr) return;
  kept_.insert(value);
  if (forever) forever_.insert(value);
}

const Value* Lives::MemoryOf(const Value* value) const {
  const auto found = shared_with_.find(value);
  return found == shared_with_.end() ? value : found->second;
}

const Value* Lives::RootOf(const Value* value) {
  for (auto next = shared_with_.find(value); next != shared_with_.end(); next = shared_with_.find(value)) {
    // Halves the path, or a chain of n values in place would take n steps for each of them.
    const auto above = shared_with_.find(next->second);
    if (above == shared_with_.end()) return next->second;
    value = next->second = above->second;
  }
  return value;
}

void Lives::Share(const Value* a, const Value* b) {
  if (a == nullptr || b == nullptr) return;
  shared_.insert({a, b});
  const Value* first = RootOf(a);
  const Value* second = RootOf(b);
  if (first != second) shared_with_[first] = second;
}

void Lives::Become(const Value* value, const Value* output) {
  Keep(value, false);
  Share(value, output);
}

void Lives::Read(const Value* value) {
  if (value == nullptr) return;
  const auto home = home_.find(value);
  if (home == home_.end()) return;  // a constant
  for (const Level& level : path_) {
    if (level.block == home->second && level.node != nullptr) last_[value] = level.node;
  }
}

void Lives::Walk(const Block& block) {
  path_.push_back({&block, nullptr});
  for (const Value* parameter : block.parameters) home_[parameter] = &block;
  for (const Node* node : block.nodes) {
    path_.back().node = node;
    WalkNode(*node);
    for (const Value* output : node->outputs) {
      home_[output] = &block;
      last_[output] = node;
    }
  }
  path_.back().node = nullptr;
  for (const Value* result : block.results) Read(result);
  path_.pop_back();
}

void Lives::WalkNode(const Node& node) {
  spans_[&node].begin = ++next_;
  for (const Value* input : node.inputs) Read(input);
  for (const Node::Extent& extent : node.extents) Read(extent.shape);
  for (const Block& inner : node.blocks) Walk(inner);
  if (!node.blocks.empty()) ++next_;
  spans_[&node].end = next_;
  switch (node.kind) {
    case NodeKind::kKernel:
      if (node.in_place) Share(node.inputs[*node.in_place], node.outputs[0]);
      // A kernel that takes objects or returns one may put an argument into it.
      if (node.returns || (node.flags & kKernelObjects) != 0) {
        for (const Value* input : node.inputs) Keep(input, true);
      }
      return;
    case NodeKind::kShapeOf:
    case NodeKind::kDims:
      return;
    case NodeKind::kDeviceCopy:
      // The device reads it later, and in each replay of a recorded run.
      if (!node.inputs[0]->on_device) forever_.insert(node.inputs[0]);
      return;
    case NodeKind::kReshape:
      Share(node.inputs[0], node.outputs[0]);
      return;
    case NodeKind::kIf:
      for (const Block& branch : node.blocks) {
        // A branch that fails has no results.
        for (std::size_t i = 0; i < branch.results.size(); ++i) Become(branch.results[i], node.outputs[i]);
      }
      return;
    case NodeKind::kLoop:
      for (std::size_t i = 0; i < node.outputs.size(); ++i) {
        const Block& body = node.blocks[0];
        Become(node.inputs[i + 2], node.outputs[i]);
        Become(body.parameters[i + 1], node.outputs[i]);
        Become(body.results[i + 1], node.outputs[i]);
      }
      return;
    case NodeKind::kMakeAdt:
    case NodeKind::kField:
      for (const Value* input : node.inputs) Keep(input, true);
      return;
  }
}

}  // namespace rewire::compiler
