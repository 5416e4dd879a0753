// SPDX-License-Identifier: Apache-2.0
//
// Leaves weights as they are in the file where packed ones would take much more of it: weights of one column
// are packed as 16. They are packed when a program is loaded. Those that grow most come first, until all
// constants are at most a sixteenth larger than without packing. Most models are below that from the start,
// and load without packing.
#include <algorithm>
#include <cstdint>
#include <unordered_set>
#include <vector>

#include "rewire/compiler/passes/edit.h"
#include "rewire/compiler/passes/passes.h"

namespace rewire::compiler {
namespace {

// Packed weights may be so many bytes larger in any case, so that small programs load without packing.
constexpr std::int64_t kFewBytes = 8192;

class PackingAtLoad {
 public:
  explicit PackingAtLoad(Graph* graph) : graph_(*graph) {
    ForEachBlock(&graph->main, [&](Block* block) {
      for (const Node* node : block->nodes)
        read_.insert(read_.end(), node->inputs.begin(), node->inputs.end());
    });
    for (const Node* node : graph->init.nodes) made_.insert(node->outputs.begin(), node->outputs.end());
  }

  void Run() {
    std::vector<Node*> nodes = graph_.init.nodes;
    std::erase_if(nodes, [](const Node* node) { return RunsAtLoad(*node); });
    for (Node* node : nodes) node->at_load = true;
    const std::int64_t as_they_are = BytesInFile();
    for (Node* node : nodes) node->at_load = false;
    const std::int64_t most = as_they_are + std::max(as_they_are / 16, kFewBytes);
    std::stable_sort(nodes.begin(), nodes.end(),
                     [](const Node* a, const Node* b) { return GrowthOf(*a) > GrowthOf(*b); });
    for (Node* node : nodes) {
      if (GrowthOf(*node) <= 0 || BytesInFile() <= most) return;
      node->at_load = true;
      LeaveWhatFollows();
    }
  }

 private:
  static bool RunsAtLoad(const Node& node) { return node.at_load || node.returns; }

  static std::int64_t BytesOf(const Value* value) {
    const auto dims = ConstantDims(value->type.dims);
    return dims ? static_cast<std::int64_t>(TensorBytes(value->type.dtype, *dims).value_or(0)) : 0;
  }

  static std::int64_t GrowthOf(const Node& node) {
    std::int64_t growth = 0;
    for (const Value* output : node.outputs) growth += BytesOf(output);
    for (const Value* input : node.inputs) {
      if (input != nullptr) growth -= BytesOf(input);
    }
    return growth;
  }

  // A node that reads what is made at load runs behind that.
  void LeaveWhatFollows() {
    for (Node* node : graph_.init.nodes) {
      for (const Value* input : node->inputs) {
        if (input != nullptr && made_.contains(input) && RunsAtLoad(*input->producer)) node->at_load = true;
      }
    }
  }

  // Of the constants that runs or nodes at load read.
  std::int64_t BytesInFile() const {
    std::unordered_set<const Value*> seen;
    std::int64_t bytes = 0;
    const auto count = [&](const Value* value) {
      if (value == nullptr || !seen.insert(value).second) return;
      if (value->IsConstant() || (made_.contains(value) && !RunsAtLoad(*value->producer)))
        bytes += BytesOf(value);
    };
    for (const Value* value : read_) count(value);
    for (const Node* node : graph_.init.nodes) {
      if (RunsAtLoad(*node)) std::for_each(node->inputs.begin(), node->inputs.end(), count);
    }
    return bytes;
  }

  Graph& graph_;
  std::vector<const Value*> read_;         // by runs
  std::unordered_set<const Value*> made_;  // by the nodes of `init`
};

}  // namespace

void PackAtLoad(Graph* graph) { PackingAtLoad(graph).Run(); }

}  // namespace rewire::compiler
