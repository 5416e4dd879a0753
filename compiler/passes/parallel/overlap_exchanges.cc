// SPDX-License-Identifier: Apache-2.0
//
// Lets a device compute while its rank exchanges a sum with the others.
//
// A call of all_reduce becomes two, one that begins it and one that waits. The first stands behind the node
// that gives the term, and the second in front of the first node that needs the sum. Other nodes from behind
// that one are moved in front of the wait. Exchanges keep their order, which all ranks must have in common.
#include <algorithm>
#include <cstddef>
#include <set>
#include <string>
#include <unordered_set>
#include <vector>

#include "rewire/compiler/ir/kernel_traits.h"
#include "rewire/compiler/passes/passes.h"
#include "rewire/kernels/contract/collective.h"

namespace rewire::compiler {
namespace {

// So many nodes behind an exchange are looked at, and so many of them move. What moves lives longer.
constexpr std::ptrdiff_t kMostSeen = 64;
constexpr std::size_t kMostMoved = 8;

class Overlap {
 public:
  explicit Overlap(Graph* graph) : graph_(*graph) {}

  void Run(Block* block) {
    for (std::size_t i = 0; i < block->nodes.size(); ++i) {
      for (Block& inner : block->nodes[i]->blocks) Run(&inner);
      if (block->nodes[i]->kernel == names::kOnDevice<names::kAllReduce>) Split(block, MoveUp(block, i));
    }
  }

 private:
  // The nodes behind an exchange.
  struct Sorted {
    std::vector<Node*> during, after;
    bool computes = false;  // the device has work meanwhile
  };

  // Moves an exchange to where its term is there, but past no other one. Returns its place.
  std::size_t MoveUp(Block* block, std::size_t from) const {
    std::vector<Node*>& nodes = block->nodes;
    std::size_t to = from;
    bool computes = false;
    for (; to > 0; --to) {
      const Node& before = *nodes[to - 1];
      const bool is_barrier = !before.blocks.empty() || names::IsCollective(before.kernel);
      if (is_barrier || Needs(*nodes[from], {before.outputs.begin(), before.outputs.end()})) break;
      computes = computes || Computes(before);
    }
    if (!computes) return from;
    const auto begin = nodes.begin();
    std::rotate(begin + static_cast<std::ptrdiff_t>(to), begin + static_cast<std::ptrdiff_t>(from),
                begin + static_cast<std::ptrdiff_t>(from) + 1);
    return to;
  }

  void Split(Block* block, std::size_t at) {
    Node* begin = block->nodes[at];
    const auto first = block->nodes.begin() + static_cast<std::ptrdiff_t>(at) + 1;
    const auto seen = std::min<std::ptrdiff_t>(block->nodes.end() - first, kMostSeen);
    const Sorted sorted = Sort({first, first + seen}, begin->outputs[0]);
    if (!sorted.computes) return;
    auto place = std::copy(sorted.during.begin(), sorted.during.end(), first);
    std::copy(sorted.after.begin(), sorted.after.end(), place);
    block->nodes.insert(place, WaitFor(begin));
  }

  Sorted Sort(const std::vector<Node*>& nodes, const Value* sum) const {
    Sorted sorted;
    std::unordered_set<const Value*> late{sum};  // what must wait
    std::size_t moved = 0;
    for (Node* node : nodes) {
      const bool stays = sorted.after.empty();
      const bool waits = Needs(*node, late) || (!stays && (moved == kMostMoved || !MayMove(*node)));
      if (waits) {
        late.insert(node->outputs.begin(), node->outputs.end());
        sorted.after.push_back(node);
        continue;
      }
      if (!stays) ++moved;
      sorted.computes = sorted.computes || Computes(*node);
      sorted.during.push_back(node);
    }
    return sorted;
  }

  bool Needs(const Node& node, const std::unordered_set<const Value*>& late) const {
    if (!node.blocks.empty()) return true;  // without a look at what is read inside
    const auto is_late = [&](const Value* value) { return late.contains(value); };
    if (std::any_of(node.inputs.begin(), node.inputs.end(), is_late)) return true;
    for (const Node::Extent& extent : node.extents) {
      if (is_late(extent.shape)) return true;
      std::set<std::string> symbols;
      for (const DimExpr& dim : extent.dims) dim.CollectSymbols(&symbols);
      for (const std::string& symbol : symbols) {
        const auto source = graph_.symbols().find(symbol);
        if (source != graph_.symbols().end() && is_late(source->second.value)) return true;
      }
    }
    return false;
  }

  static bool IsOnDevice(const Node& node) {
    return std::all_of(node.outputs.begin(), node.outputs.end(),
                       [](const Value* output) { return output->on_device; });
  }
  bool MayMove(const Node& node) const {
    if (node.kind == NodeKind::kReshape) return true;
    return node.kind == NodeKind::kKernel && IsOnDevice(node) && IsPure(graph_, node);
  }
  static bool Computes(const Node& node) {
    return node.kind == NodeKind::kKernel && IsOnDevice(node) && !names::IsCollective(node.kernel);
  }

  // Makes the call one that begins alone, and returns one that waits.
  Node* WaitFor(Node* begin) {
    Value* sum = begin->outputs[0];
    Value* begun = graph_.NewValue(sum->name, sum->type);
    begun->on_device = true;
    begun->producer = begin;
    begin->kernel = names::kBeginAllReduce;
    begin->outputs[0] = begun;
    Node* wait = graph_.NewNode(NodeKind::kKernel);
    wait->kernel = names::kWaitForExchange;
    for (const Attribute& attribute : begin->attributes) {
      if (attribute.name == "channel") wait->attributes.push_back(attribute);
    }
    wait->source = begin->source;
    wait->inputs = {begun, begin->inputs[0]};
    wait->outputs = {sum};
    wait->extents = begin->extents;
    sum->producer = wait;
    return wait;
  }

  Graph& graph_;
};

}  // namespace

void OverlapExchanges(Graph* graph) {
  if (graph->device) Overlap(graph).Run(&graph->main);
}

}  // namespace rewire::compiler
