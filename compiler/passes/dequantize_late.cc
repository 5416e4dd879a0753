// SPDX-License-Identifier: Apache-2.0
// What moves or selects elements does so with dequantised ones as with the integers that they come from, of
// which there is a quarter of the bytes: dequantising comes behind it.
#include <utility>

#include "compiler/passes/edit.h"
#include "compiler/passes/passes.h"
#include "compiler/passes/quantization.h"

namespace rewire::compiler {
namespace {

// By one scale that is positive, the largest of the elements is the largest of the integers.
bool Commutes(const Node& node) {
  return (node.kernel == "rewire.max_pool" || node.kernel == "rewire.transpose") &&
         node.outputs.size() == 1 && node.inputs.size() == 1 && node.extents.size() == 1 &&
         node.extents[0].shape == nullptr;
}

}  // namespace

void DequantizeLate(Graph* graph) {
  const Edit edit(graph);
  ForEachBlock(&graph->main, [&](Block* block) {
    for (std::size_t i = 0; i < block->nodes.size(); ++i) {
      Node* node = block->nodes[i];
      if (node->kind != NodeKind::kKernel || !Commutes(*node)) continue;
      Node* dequantize = node->inputs[0]->producer;
      if (dequantize == nullptr || dequantize->kernel != "rewire.dequantize_linear" ||
          edit.OnlyUser(dequantize->outputs[0]) != node || !QuantizationOf(*dequantize)) {
        continue;
      }
      // The node keeps its place and takes the integers; the other one comes behind it.
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
