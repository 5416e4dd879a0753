// SPDX-License-Identifier: Apache-2.0
//
// Fuses x * clip(x + 3, 0, 6) / 6. Exporters before opset 14 wrote HardSwish in this way, and some still do.
#include <cmath>

#include "rewire/compiler/passes/edit.h"
#include "rewire/compiler/passes/match/sources.h"
#include "rewire/compiler/passes/passes.h"
#include "rewire/kernels/contract/elementwise.h"

namespace rewire::compiler {
namespace {

bool IsScalar(const Value* value, float expected) {
  const std::optional<float> scalar = ScalarOf(value);
  return scalar && *scalar == expected;
}

// The input of a binary node that is not the constant `expected`; null when there is no such constant.
Value* OtherThan(const Node& node, float expected) {
  if (IsScalar(node.inputs[1], expected)) return node.inputs[0];
  return IsScalar(node.inputs[0], expected) ? node.inputs[1] : nullptr;
}

bool IsKernel(const Value* value, const char* kernel) {
  return value->producer != nullptr && value->producer->kernel == kernel;
}

// x, when `node` computes x * clip(x + 3, 0, 6) / 6 by values that nothing else reads.
Value* HardSwishOf(const Node& node, const Edit& edit) {
  Value* product = nullptr;
  if (node.kernel == names::kDiv && IsScalar(node.inputs[1], 6)) product = node.inputs[0];
  if (node.kernel == names::kMul) {
    for (int i : {0, 1}) {
      const Value* sixth = node.inputs[static_cast<std::size_t>(1 - i)];
      const std::optional<float> factor = ScalarOf(sixth);
      if (factor && std::fabs(static_cast<double>(*factor) * 6 - 1) < 6e-7 + RoundingOf(sixth)) {
        product = node.inputs[static_cast<std::size_t>(i)];
      }
    }
  }
  if (product == nullptr || edit.UseCount(product) != 1 || !IsKernel(product, names::kMul)) return nullptr;
  for (std::size_t i : {0, 1}) {
    const Value* clipped = product->producer->inputs[i];
    Value* x = product->producer->inputs[1 - i];
    if (!IsKernel(clipped, names::kClip) || edit.UseCount(clipped) != 1) continue;
    const Node& clip = *clipped->producer;
    if (FloatAttribute(clip, "min", -1) != 0 || FloatAttribute(clip, "max", -1) != 6) continue;
    const Value* sum = clip.inputs[0];
    if (!IsKernel(sum, names::kAdd) || edit.UseCount(sum) != 1) continue;
    if (OtherThan(*sum->producer, 3) == x) return x;
  }
  return nullptr;
}

}  // namespace

void FuseHardSwish(Graph* graph) {
  Edit edit(graph);
  ForEachBlock(&graph->main, [&](Block* block) {
    for (Node* node : block->nodes) {
      if (node->kind != NodeKind::kKernel || node->inputs.size() != 2) continue;
      Value* x = HardSwishOf(*node, edit);
      if (x == nullptr || ShapeText(x->type.dims) != ShapeText(node->outputs[0]->type.dims)) continue;
      node->kernel = names::kHardSwish;
      node->attributes.clear();
      AddSourcesBehind(node, {x});
      node->inputs = {x};
    }
  });
  RemoveDeadCode(graph);
}

}  // namespace rewire::compiler
