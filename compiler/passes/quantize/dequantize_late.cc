// SPDX-License-Identifier: Apache-2.0
//
// Moves DequantizeLinear behind nodes that only move or select elements. They then work on integers, which
// take a quarter of the memory.
#include <utility>

#include "rewire/compiler/ir/kernel_traits.h"
#include "rewire/compiler/passes/edit.h"
#include "rewire/compiler/passes/match/quantization.h"
#include "rewire/compiler/passes/passes.h"
#include "rewire/kernels/contract/quantization.h"

namespace rewire::compiler {
namespace {

// Maxima commute with a positive scale: the largest element belongs to the largest integer.
bool Commutes(const Graph& graph, const Node& node) {
  return Selects(graph, node) && node.extents.size() == 1 && node.extents[0].shape == nullptr;
}

}  // namespace

void DequantizeLate(Graph* graph) {
  const Edit edit(graph);
  ForEachBlock(&graph->main, [&](Block* block) {
    for (std::size_t i = 0; i < block->nodes.size(); ++i) {
      Node* node = block->nodes[i];
      if (!Commutes(*graph, *node)) continue;
      Node* dequantize = node->inputs[0]->producer;
      if (dequantize == nullptr || dequantize->kernel != names::kDequantizeLinear ||
          edit.OnlyUser(dequantize->outputs[0]) != node || !QuantizationOf(*dequantize)) {
        continue;
      }
      // The node keeps its place and takes the integers. The dequantizing node is placed behind it.
      Value* floats = node->outputs[0];
      Value* stored =
          graph->NewValue(floats->name, TensorOf(dequantize->inputs[0]->type.dtype, floats->type.dims));
      graph->MoveSymbols({{dequantize->outputs[0], dequantize->inputs[0]}});
      node->inputs[0] = dequantize->inputs[0];
      node->outputs[0] = stored;
      stored->producer = node;
      dequantize->inputs[0] = stored;
      dequantize->outputs[0] = floats;
      dequantize->extents = node->extents;
      floats->producer = dequantize;
      std::erase(block->nodes, dequantize);
      --i;
      block->nodes.insert(block->nodes.begin() + static_cast<std::ptrdiff_t>(i) + 1, dequantize);
    }
  });
}

}  // namespace rewire::compiler
