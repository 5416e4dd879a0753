// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>
#include <string>
#include <unordered_set>
#include <vector>

#include "rewire/compiler/passes/passes.h"
#include "rewire/kernels/contract/collective.h"

namespace rewire::compiler {
namespace {

// Marks what results need, backwards: a node of which nothing is needed is not looked at. A value also is
// needed when a dimension that is allocated is computed from its shape.
class DeadCode {
 public:
  explicit DeadCode(Graph* graph) : graph_(*graph) {}

  void Run() {
    for (const Value* result : graph_.main.results) Need(result);
    // A symbol may be needed by a node in front of its source's only in another block, so once is not enough.
    std::size_t before = 0;
    do {
      before = needed_.size();
      Mark(graph_.main);
      Mark(graph_.init);
    } while (needed_.size() != before);
    Sweep(&graph_.main);
    Sweep(&graph_.init);
  }

 private:
  void Need(const Value* value) {
    if (value != nullptr) needed_.insert(value);
  }

  void NeedSymbols(const Shape& dims) {
    std::set<std::string> names;
    for (const DimExpr& dim : dims) dim.CollectSymbols(&names);
    for (const std::string& name : names) {
      const auto source = graph_.symbols().find(name);
      if (source != graph_.symbols().end()) Need(source->second.value);
    }
  }

  // Other ranks wait for the calls of collectives.
  bool IsNeeded(const Node& node) const {
    return names::IsCollective(node.kernel) ||
           std::any_of(node.outputs.begin(), node.outputs.end(),
                       [&](const Value* output) { return needed_.contains(output); });
  }

  void Mark(const Block& block) {
    for (auto at = block.nodes.rbegin(); at != block.nodes.rend(); ++at) {
      const Node& node = **at;
      // Values that a body needs may have a source in it.
      if (!IsNeeded(node) && !InnerIsNeeded(node)) continue;
      for (const Value* output : node.outputs) Need(output);
      for (const Value* input : node.inputs) Need(input);
      for (const Node::Extent& extent : node.extents) {
        Need(extent.shape);
        if (extent.shape == nullptr) NeedSymbols(extent.dims);
      }
      for (const Block& inner : node.blocks) {
        for (const Value* result : inner.results) Need(result);
        Mark(inner);
      }
    }
  }

  bool InnerIsNeeded(const Node& node) const {
    for (const Block& inner : node.blocks) {
      for (const Node* child : inner.nodes) {
        if (IsNeeded(*child) || InnerIsNeeded(*child)) return true;
      }
    }
    return false;
  }

  void Sweep(Block* block) {
    std::erase_if(block->nodes, [&](const Node* node) { return !IsNeeded(*node); });
    for (Node* node : block->nodes) {
      for (Block& inner : node->blocks) Sweep(&inner);
    }
  }

  Graph& graph_;
  std::unordered_set<const Value*> needed_;
};

}  // namespace

void RemoveDeadCode(Graph* graph) { DeadCode(graph).Run(); }

}  // namespace rewire::compiler
