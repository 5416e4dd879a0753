// SPDX-License-Identifier: Apache-2.0
//
// The fewest copies are a minimum cut. Its vertices are the two sides and the slots. A value is copied once
// if any of its readers is on the other side, so it has two more vertices: one for a copy to the host, one
// for a copy to the device.
#include "rewire/compiler/passes/place/sides.h"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <unordered_map>

namespace rewire::compiler {
namespace {

using Vertex = std::size_t;
constexpr Vertex kDeviceSide = 0, kHostSide = 1;
// With more slots, all of them stay on the host.
constexpr std::size_t kMostSlots = 4096;
// A copy in a loop counts as so many outside, up to kMostCopyWeight.
constexpr std::int64_t kLoopWeight = 8, kMostCopyWeight = 4096;
constexpr std::int64_t kUncuttable = std::int64_t{1} << 40;

class MinimumCut {
 public:
  Vertex Add() {
    edges_.emplace_back();
    return edges_.size() - 1;
  }
  void Connect(Vertex from, Vertex to, std::int64_t capacity) {
    edges_[from].push_back({to, edges_[to].size(), capacity});
    edges_[to].push_back({from, edges_[from].size() - 1, 0});
  }
  // The vertices that stay with `source`, as few as possible. Ford and Fulkerson, shortest paths first.
  std::vector<bool> Solve(Vertex source, Vertex sink) {
    while (true) {
      std::vector<Edge*> by(edges_.size(), nullptr);
      std::vector<bool> reached(edges_.size(), false);
      std::deque<Vertex> next = {source};
      reached[source] = true;
      while (!next.empty() && !reached[sink]) {
        const Vertex vertex = next.front();
        next.pop_front();
        for (Edge& edge : edges_[vertex]) {
          if (edge.left == 0 || reached[edge.to]) continue;
          reached[edge.to] = true;
          by[edge.to] = &edge;
          next.push_back(edge.to);
        }
      }
      if (!reached[sink]) return reached;
      std::int64_t least = kUncuttable;
      for (Vertex at = sink; at != source; at = Back(*by[at]).to) least = std::min(least, by[at]->left);
      for (Vertex at = sink; at != source;) {
        Edge& edge = *by[at];
        edge.left -= least;
        Back(edge).left += least;
        at = Back(edge).to;
      }
    }
  }

 private:
  struct Edge {
    Vertex to;
    std::size_t back;  // the place of the opposite edge there
    std::int64_t left;
  };
  Edge& Back(const Edge& edge) { return edges_[edge.to][edge.back]; }

  std::vector<std::vector<Edge>> edges_;
};

class SideChooser {
 public:
  SideChooser(const std::unordered_set<const Node*>& placed, const std::unordered_set<const Value*>& on_host)
      : placed_(placed), on_host_(on_host) {
    cut_.Add();
    cut_.Add();
  }

  std::unordered_set<const Value*> Run(const Graph& graph) {
    Walk(graph.main, 1);
    for (const Value* result : graph.main.results) Read(result, kHostSide);
    if (slots_.empty() || slots_.size() > kMostSlots) return {};
    for (const auto& [value, readers] : readers_) Connect(value, readers);
    const std::vector<bool> on_device = cut_.Solve(kDeviceSide, kHostSide);
    std::unordered_set<const Value*> chosen;
    for (const Value* output : slots_) {
      if (on_device[SideOf(output)]) chosen.insert(output);
    }
    return chosen;
  }

 private:
  Vertex SideOf(const Value* value) const {
    const auto found = sides_.find(value);
    return found == sides_.end() ? kHostSide : found->second;
  }

  void Define(const Value* value, Vertex side, std::int64_t weight) {
    sides_[value] = side;
    weights_[value] = weight;
  }

  // Constants are placed on both sides when the program is linked.
  void Read(const Value* value, Vertex reader) {
    if (value != nullptr && !value->IsConstant() && value->type.IsTensor()) {
      readers_[value].insert(reader);
    }
  }

  void Walk(const Block& block, std::int64_t weight) {
    for (Node* node : block.nodes) {
      if (node->kind == NodeKind::kIf || node->kind == NodeKind::kLoop) {
        WalkBlocks(node, weight);
        continue;
      }
      const bool view = node->kind == NodeKind::kReshape || node->kind == NodeKind::kShapeOf;
      const Vertex side = placed_.contains(node) ? kDeviceSide : kHostSide;
      for (std::size_t i = view ? 1 : 0; i < node->inputs.size(); ++i) Read(node->inputs[i], side);
      for (const Node::Extent& extent : node->extents) Read(extent.shape, kHostSide);
      const Vertex made = node->kind == NodeKind::kReshape ? SideOf(node->inputs[0]) : side;
      for (const Value* output : node->outputs) Define(output, made, weight);
    }
  }

  void WalkBlocks(Node* node, std::int64_t weight) {
    const bool loop = node->kind == NodeKind::kLoop;
    const std::int64_t inner = loop ? std::min(weight * kLoopWeight, kMostCopyWeight) : weight;
    const std::vector<Slot> slots = SlotsOf(node);
    for (const Slot& slot : slots) {
      const bool free = slot.output->type.IsTensor() && !on_host_.contains(slot.output) &&
                        !on_host_.contains(slot.parameter);
      const Vertex side = free ? cut_.Add() : kHostSide;
      if (free) slots_.push_back(slot.output);
      Define(slot.output, side, weight);
      if (slot.parameter != nullptr) Define(slot.parameter, side, inner);
    }
    for (std::size_t i = 0; i < (loop ? 2 : 1); ++i) Read(node->inputs[i], kHostSide);
    for (const Block& block : node->blocks) Walk(block, inner);
    if (loop) Read(node->blocks[0].results[0], kHostSide);
    for (const Slot& slot : slots) {
      for (Value* const* source : slot.sources) Read(*source, SideOf(slot.output));
    }
  }

  void Connect(const Value* value, const std::unordered_set<Vertex>& readers) {
    const Vertex side = SideOf(value);
    const bool open = side > kHostSide || std::any_of(readers.begin(), readers.end(),
                                                      [](Vertex reader) { return reader > kHostSide; });
    if (!open) return;
    const auto found = weights_.find(value);
    const std::int64_t weight = found == weights_.end() ? 1 : found->second;
    const Vertex to_host = cut_.Add(), to_device = cut_.Add();
    cut_.Connect(side, to_host, weight);
    cut_.Connect(to_device, side, weight);
    for (const Vertex reader : readers) {
      cut_.Connect(to_host, reader, kUncuttable);
      cut_.Connect(reader, to_device, kUncuttable);
    }
  }

  const std::unordered_set<const Node*>& placed_;
  const std::unordered_set<const Value*>& on_host_;
  MinimumCut cut_;
  std::vector<const Value*> slots_;  // the outputs of those that may be on either side
  std::unordered_map<const Value*, Vertex> sides_;
  std::unordered_map<const Value*, std::int64_t> weights_;
  std::unordered_map<const Value*, std::unordered_set<Vertex>> readers_;
};

}  // namespace

std::vector<Slot> SlotsOf(Node* node) {
  std::vector<Slot> slots;
  if (node->kind != NodeKind::kIf && node->kind != NodeKind::kLoop) return slots;
  const bool loop = node->kind == NodeKind::kLoop;
  for (std::size_t i = 0; i < node->outputs.size(); ++i) {
    Slot slot;
    slot.output = node->outputs[i];
    if (loop) {
      slot.parameter = node->blocks[0].parameters[i + 1];
      slot.sources = {&node->inputs[i + 2], &node->blocks[0].results[i + 1]};
    } else {
      for (Block& branch : node->blocks) {
        if (i < branch.results.size()) slot.sources.push_back(&branch.results[i]);  // none if it fails
      }
    }
    slots.push_back(std::move(slot));
  }
  return slots;
}

std::unordered_set<const Value*> SlotsOnDevice(const Graph& graph,
                                               const std::unordered_set<const Node*>& placed,
                                               const std::unordered_set<const Value*>& on_host) {
  return SideChooser(placed, on_host).Run(graph);
}

}  // namespace rewire::compiler
