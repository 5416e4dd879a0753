// SPDX-License-Identifier: Apache-2.0
//
// Lets a kernel write bf16 where only products in bf16 and depthwise convolutions read what it writes. Half
// of the memory is written and read. Products would round it in any case, so for them results stay the same.
#include <unordered_set>

#include "rewire/compiler/passes/edit.h"
#include "rewire/compiler/passes/pack/packing.h"
#include "rewire/compiler/passes/passes.h"

namespace rewire::compiler {
namespace {

bool IsPackedProduct(const Node& node) {
  return node.kind == NodeKind::kKernel &&
         (node.kernel == "rewire.packed.conv" || node.kernel == "rewire.packed.matmul");
}

bool IsDepthwise(const Node& node) {
  return node.kind == NodeKind::kKernel && node.kernel == "rewire.packed.depthwise";
}

// The kernels that can write bf16. With a residual they cannot.
bool CanRound(const Node& node) {
  return (IsPackedProduct(node) || IsDepthwise(node)) && node.inputs.size() <= 3 &&
         node.outputs.size() == 1 && node.extents.size() == 1;
}

// Kernels write parts of a vector of channels by way of a copy, which takes longer than bf16 saves where no
// product would round.
bool HasWholeVectors(const Value& image) {
  return !image.type.dims.empty() && image.type.dims.back().constant().value_or(1) % kPackedColumns == 0;
}

// If the node reads its first input alone, and that may be bf16.
bool Rounds(const Node& node, const Value* input) {
  if (IsDepthwise(node)) return node.inputs[0] == input && HasWholeVectors(*input);
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
