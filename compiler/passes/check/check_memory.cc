// SPDX-License-Identifier: Apache-2.0
//
// Whether nothing reads what was written over, and whether arenas keep tensors apart that live at once.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "rewire/compiler/ir/dim_limits.h"
#include "rewire/compiler/ir/kernel_traits.h"
#include "rewire/compiler/passes/check/checks.h"
#include "rewire/compiler/passes/memory/lives.h"
#include "rewire/compiler/passes/memory/parts.h"

namespace rewire::compiler {
namespace {

// Whether the node writes its outputs into memory that it is given.
bool Writes(const Node& node) { return node.kind == NodeKind::kKernel && !node.returns; }

// Whether that is all: what takes objects may put its inputs into one.
bool KeepsNoInput(const Node& node) { return Writes(node) && (node.flags & kKernelObjects) == 0; }

// Nodes that write over an input.
class InPlaceCheck {
 public:
  InPlaceCheck(const Graph& graph, const Lives& lives) : graph_(graph), lives_(lives) {}

  Status Run() {
    Hold(graph_.main, nullptr);
    return ForEachNode(graph_.main, [this](const Node& node) { return Check(node); });
  }

 private:
  void Hold(const std::vector<Value*>& values) { held_.insert(values.begin(), values.end()); }

  // Collects what anything but a kernel refers to: views, fields, results, and what blocks get.
  void Hold(const Block& block, const Node* around) {
    Hold(block.parameters);
    Hold(block.results);
    for (std::size_t i = 1; around != nullptr && i < block.parameters.size(); ++i) {
      loops_[block.parameters[i]] = {around, i};
    }
    for (const Node* node : block.nodes) {
      if (!KeepsNoInput(*node) && node->kind != NodeKind::kDeviceCopy) Hold(node->inputs);
      if (!Writes(*node)) Hold(node->outputs);
      for (const Block& inner : node->blocks) Hold(inner, node);
    }
  }

  Status Check(const Node& node) const {
    if (!node.in_place) return {};
    const std::size_t index = *node.in_place;
    if (!KeepsNoInput(node) || node.outputs.size() != 1 || index >= node.inputs.size() || index >= 32)
      return Broken(&node, nullptr, "one output over one of its inputs", fmt::format("input {}", index));
    const Value* input = node.inputs[index];
    const Value* output = node.outputs[0];
    if ((InputsToWriteOver(graph_, node) >> index & 1) == 0)
      return Broken(&node, input, "an input that the kernel may write over", fmt::format("input {}", index));
    if (input->IsConstant() || !(input->type.dtype == output->type.dtype) ||
        !SameSize(input->type.dims, node.extents[0].dims) || node.extents[0].shape != nullptr)
      return Broken(&node, input, "memory of the output's size", TypeText(output->type));
    if (!lives_.DiesAt(input, &node))
      return Broken(&node, input, "a value that nothing reads after it is written over", "one that is read");
    if (!held_.contains(input)) return {};
    const auto loop = loops_.find(input);
    const bool carried = loop != loops_.end() && loop->second.node->kind == NodeKind::kLoop &&
                         loop->second.node->blocks[0].results[loop->second.index] == output;
    if (!carried) return Broken(&node, input, "memory of its own to write over", "a view, or what is one");
    const Value* first = loop->second.node->inputs[loop->second.index + 1];
    const Node* maker = first->producer;
    if (maker != nullptr && Writes(*maker) && lives_.DiesAt(first, loop->second.node)) return {};
    return Broken(&node, first, "a first value that the loop alone uses", "one that something else holds");
  }

  // The input's type may have a symbol where the node has its expression.
  static bool SameSize(const Shape& a, const Shape& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](const DimExpr& x, const DimExpr& y) { return !Differ(x, y); });
  }

  struct Carried {
    const Node* node;
    std::size_t index;  // of the result
  };

  const Graph& graph_;
  const Lives& lives_;
  std::unordered_set<const Value*> held_;
  std::unordered_map<const Value*, Carried> loops_;  // by parameters of blocks
};

// Tensors with offsets in one piece of memory. Those that are parts of one another are one group.
class ArenaCheck {
 public:
  ArenaCheck(const Graph& graph, const Lives& lives, const Arena& arena)
      : lives_(lives), arena_(arena), limits_(graph), graph_(graph) {}

  Status Run() {
    if (arena_.bytes == 0) {
      if (arena_.offsets.empty()) return {};
      return Broken(nullptr, nullptr, "no offsets without an arena", std::to_string(arena_.offsets.size()));
    }
    if (Status ok = ForEachNode(graph_.main, [this](const Node& node) { return Collect(node); }); !ok)
      return ok;
    if (places_.size() != arena_.offsets.size())
      return Broken(nullptr, nullptr, "offsets of values that kernels write",
                    fmt::format("{} of others", arena_.offsets.size() - places_.size()));
    return CheckApart();
  }

 private:
  struct Place {
    const Node* node;
    const Value* value;
    std::uint64_t begin, end;  // bytes
    std::size_t from, to;      // places in the program
    std::size_t group;
  };

  Status Collect(const Node& node) {
    if (!Writes(node)) return {};
    for (std::size_t i = 0; i < node.outputs.size() && !node.in_place; ++i) {
      const Value* value = node.outputs[i];
      const auto offset = arena_.offsets.find(value);
      if (offset == arena_.offsets.end()) continue;
      const auto dims =
          node.extents[i].shape == nullptr ? limits_.MostOf(node.extents[i].dims) : std::nullopt;
      const auto bytes = dims ? TensorBytes(value->type.dtype, *dims) : std::nullopt;
      if (!bytes || offset->second > arena_.bytes || *bytes > arena_.bytes - offset->second)
        return Broken(&node, value, fmt::format("a place in the {} bytes of the arena", arena_.bytes),
                      fmt::format("{} bytes at {}", bytes.value_or(0), offset->second));
      if (lives_.IsKept(value)) return Broken(&node, value, "memory of its own", "a place in the arena");
      index_[value] = places_.size();
      places_.push_back({&node, value, offset->second, offset->second + *bytes, lives_.PlaceOf(&node),
                         lives_.EndOf(value), places_.size()});
    }
    // Both live where the node copies one to the other. So where the copy is none, it is one group.
    for (const Part& part : PartsOf(node)) {
      const auto inner = Item(part.inner), outer = Item(part.outer);
      if (inner && outer && places_[*inner].begin == places_[*outer].begin + part.offset)
        places_[RootOf(*inner)].group = RootOf(*outer);
    }
    return {};
  }

  // The item in which a value lies: it may be a view of what has an offset, or written over it.
  std::optional<std::size_t> Item(const Value* value) const {
    for (const Node* node = value->producer; node != nullptr && !index_.contains(value);) {
      if (node->kind == NodeKind::kReshape) {
        value = node->inputs[0];
      } else if (node->in_place) {
        value = node->inputs[*node->in_place];
      } else {
        return std::nullopt;
      }
      node = value->producer;
    }
    const auto found = index_.find(value);
    return found == index_.end() ? std::nullopt : std::optional(found->second);
  }

  std::size_t RootOf(std::size_t i) {
    while (places_[i].group != i) i = places_[i].group = places_[places_[i].group].group;
    return i;
  }

  // Goes through the program with the groups that live, by their bytes.
  Status CheckApart() {
    std::unordered_map<std::size_t, Place> groups;
    for (std::size_t i = 0; i < places_.size(); ++i) {
      const auto [at, added] = groups.try_emplace(RootOf(i), places_[i]);
      Place& whole = at->second;
      whole.begin = std::min(whole.begin, places_[i].begin);
      whole.end = std::max(whole.end, places_[i].end);
      whole.from = std::min(whole.from, places_[i].from);
      whole.to = std::max(whole.to, places_[i].to);
    }
    std::vector<Place> begins;
    for (const auto& [root, whole] : groups) {
      if (whole.begin < whole.end) begins.push_back(whole);
    }
    std::vector<Place> ends = begins;
    std::sort(begins.begin(), begins.end(), [](const Place& a, const Place& b) { return a.from < b.from; });
    std::sort(ends.begin(), ends.end(), [](const Place& a, const Place& b) { return a.to < b.to; });
    std::map<std::uint64_t, const Place*> live;  // by their first bytes
    auto over = ends.begin();
    for (const Place& next : begins) {
      for (; over != ends.end() && over->to < next.from; ++over) live.erase(over->begin);
      const auto behind = live.lower_bound(next.begin);
      const Place* other = behind != live.end() && behind->first < next.end ? behind->second : nullptr;
      if (other == nullptr && behind != live.begin() && std::prev(behind)->second->end > next.begin)
        other = std::prev(behind)->second;
      if (other != nullptr)
        return Broken(next.node, next.value,
                      fmt::format("bytes apart from '{}', which lives then at {} to {}", other->value->name,
                                  other->begin, other->end),
                      fmt::format("{} to {}", next.begin, next.end));
      live.emplace(next.begin, &next);
    }
    return {};
  }

  const Lives& lives_;
  const Arena& arena_;
  const DimLimits limits_;
  const Graph& graph_;
  std::vector<Place> places_;
  std::unordered_map<const Value*, std::size_t> index_;
};

// Blocks that a run lays out.
Status CheckShapeArena(const ShapeArena& arena, const Arena& fixed) {
  std::unordered_set<const Value*> seen;
  for (std::size_t i = 0; i < arena.blocks.size(); ++i) {
    const ShapeArena::Block& block = arena.blocks[i];
    const Node* node = block.value->producer;
    if (node == nullptr || !Writes(*node) || node->in_place || fixed.offsets.contains(block.value))
      return Broken(node, block.value, "a value that a kernel writes into a place of its own", "another one");
    if (!seen.insert(block.value).second) return Broken(node, block.value, "one block", "two");
    const auto output = std::find(node->outputs.begin(), node->outputs.end(), block.value);
    const Shape& dims = node->extents[static_cast<std::size_t>(output - node->outputs.begin())].dims;
    if (ShapeText(dims) != ShapeText(block.dims))
      return Broken(node, block.value, "a block of its size, " + ShapeText(dims), ShapeText(block.dims));
    for (const std::size_t below : block.on) {
      if (below >= i)
        return Broken(node, block.value, "a block on earlier ones", fmt::format("{} on {}", i, below));
    }
  }
  return {};
}

bool HasInPlace(const Block& block) {
  return std::any_of(block.nodes.begin(), block.nodes.end(), [](const Node* node) {
    return node->in_place || std::any_of(node->blocks.begin(), node->blocks.end(), HasInPlace);
  });
}

}  // namespace

Status CheckMemory(const Graph& graph) {
  const bool arenas = graph.arena.bytes > 0 || graph.device_arena.bytes > 0 || !graph.arena.offsets.empty() ||
                      !graph.device_arena.offsets.empty();
  if (arenas || HasInPlace(graph.main)) {
    const Lives lives(graph);
    if (Status ok = InPlaceCheck(graph, lives).Run(); !ok) return ok;
    for (const Arena* arena : {&graph.arena, &graph.device_arena}) {
      if (Status ok = ArenaCheck(graph, lives, *arena).Run(); !ok) return ok;
    }
  }
  if (Status ok = CheckShapeArena(graph.shape_arena, graph.arena); !ok) return ok;
  return CheckShapeArena(graph.device_shape_arena, graph.device_arena);
}

}  // namespace rewire::compiler
