// SPDX-License-Identifier: Apache-2.0
//
// Lets a kernel write bf16 where only products in bf16 read what it writes. They would round it in any case,
// so results stay the same. Half of the memory is written and read, and nothing is rounded again.
#include <unordered_set>

#include "rewire/compiler/passes/edit.h"
#include "rewire/compiler/passes/passes.h"

namespace rewire::compiler {
namespace {

bool IsPackedProduct(const Node& node) {
  return node.kind == NodeKind::kKernel &&
         (node.kernel == "rewire.packed.conv" || node.kernel == "rewire.packed.matmul");
}

// The kernels that can write bf16. With a residual they cannot.
bool CanRound(const Node& node) {
  return (IsPackedProduct(node) ||
          (node.kind == NodeKind::kKernel && node.kernel == "rewire.packed.depthwise")) &&
         node.inputs.size() <= 3 && node.outputs.size() == 1 && node.extents.size() == 1;
}

// If the node reads its first input alone as a product in bf16 does.
bool Rounds(const Node& node, const Value* input) {
  return IsPackedProduct(node) && node.inputs[0] == input && node.inputs[1]->type.dtype == kBFloat16 &&
         (node.inputs.size() < 4 || node.inputs[3] != input);
}

class Rounding {
 public:
  explicit Rounding(Graph* graph) : graph_(*graph) {}

  void Run() {
    if (!graph_.bf16) return;
    ForEachBlock(&graph_.main, [&](Block* block) {
      for (const Value* result : block->results) {
        if (result != nullptr) kept_.insert(result);
      }
      for (Node* node : block->nodes) {
        for (const Value* input : node->inputs) {
          if (input != nullptr && !Rounds(*node, input)) kept_.insert(input);
        }
        for (const Node::Extent& extent : node->extents) {
          if (extent.shape != nullptr) kept_.insert(extent.shape);
        }
      }
    });
    ForEachBlock(&graph_.main, [&](Block* block) {
      for (Node* node : block->nodes) {
        if (CanRound(*node)) Round(node->outputs[0]);
      }
    });
  }

 private:
  void Round(Value* value) const {
    if (kept_.contains(value) || value->type.dtype != kFloat32 || value->type.dims.empty()) return;
    const std::int64_t last = value->type.dims.back().constant().value_or(1);
    if (last % 2 != 0) return;
    value->type.dtype = kBFloat16;
    // The model has no such value.
    value->model_name.clear();
  }

  Graph& graph_;
  std::unordered_set<const Value*> kept_;  // what something reads in f32
};

}  // namespace

void RoundEarly(Graph* graph) { Rounding(graph).Run(); }

}  // namespace rewire::compiler
