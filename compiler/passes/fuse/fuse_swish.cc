// SPDX-License-Identifier: Apache-2.0
//
// Fuses x * sigmoid(x), which models of vision have behind most convolutions, into one activation.
#include "rewire/compiler/passes/edit.h"
#include "rewire/compiler/passes/match/sources.h"
#include "rewire/compiler/passes/passes.h"
#include "rewire/kernels/contract/elementwise.h"

namespace rewire::compiler {
namespace {

// x, when `node` computes x * sigmoid(x) by a sigmoid that nothing else reads.
Value* SwishOf(const Node& node, const Edit& edit) {
  if (node.kernel != names::kMul) return nullptr;
  for (const std::size_t i : {0, 1}) {
    const Value* sigmoid = node.inputs[i];
    Value* x = node.inputs[1 - i];
    if (sigmoid->producer != nullptr && sigmoid->producer->kernel == names::kSigmoid &&
        sigmoid->producer->inputs[0] == x && edit.UseCount(sigmoid) == 1)
      return x;
  }
  return nullptr;
}

}  // namespace

void FuseSwish(Graph* graph) {
  const Edit edit(graph);
  ForEachBlock(&graph->main, [&](Block* block) {
    for (Node* node : block->nodes) {
      if (node->kind != NodeKind::kKernel || node->inputs.size() != 2) continue;
      Value* x = SwishOf(*node, edit);
      if (x == nullptr || ShapeText(x->type.dims) != ShapeText(node->outputs[0]->type.dims)) continue;
      node->kernel = names::kSwish;
      node->attributes.clear();
      AddSourcesBehind(node, {x});
      node->inputs = {x};
    }
  });
  RemoveDeadCode(graph);
}

}  // namespace rewire::compiler
