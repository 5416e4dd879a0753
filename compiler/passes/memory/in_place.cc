// SPDX-License-Identifier: Apache-2.0
//
// Lets a kernel write over an input that nothing reads afterwards, if its row allows it. This saves memory
// and space in the caches.
#include <algorithm>
#include <cstdint>

#include "rewire/compiler/ir/kernel_traits.h"
#include "rewire/compiler/passes/edit.h"
#include "rewire/compiler/passes/memory/lives.h"
#include "rewire/compiler/passes/passes.h"

namespace rewire::compiler {
namespace {

// Whether both are allocated, and the same.
bool SameMemory(const Value& value, const Node& node) {
  const Node* maker = value.producer;
  if (maker == nullptr || maker->kind != NodeKind::kKernel || maker->returns) return false;
  const auto output = std::find(maker->outputs.begin(), maker->outputs.end(), &value);
  const Node::Extent& made = maker->extents[static_cast<std::size_t>(output - maker->outputs.begin())];
  const Node::Extent& wanted = node.extents[0];
  return made.shape == nullptr && wanted.shape == nullptr && made.dims == wanted.dims &&
         value.type.dtype == node.outputs[0]->type.dtype;
}

// Whether the node reads the value through an input that it must not write over, too.
bool IsReadElsewhere(const Value* value, const Node& node, std::uint32_t candidates) {
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i] == value && (candidates >> i & 1) == 0) return true;
  }
  return false;
}

}  // namespace

void WriteInPlace(Graph* graph) {
  const Lives lives(*graph);
  ForEachBlock(&graph->main, [&](Block* block) {
    for (Node* node : block->nodes) {
      const std::uint32_t candidates = InputsToWriteOver(*graph, *node);
      if (candidates == 0) continue;
      for (std::size_t i = 0; i < node->inputs.size() && !node->in_place; ++i) {
        const Value* input = node->inputs[i];
        if ((candidates >> i & 1) == 0 || input == nullptr || !SameMemory(*input, *node)) continue;
        if (IsReadElsewhere(input, *node, candidates)) continue;
        if (!lives.DiesAt(input, node) || lives.IsKept(input) || lives.IsShared(input)) continue;
        node->in_place = static_cast<std::uint32_t>(i);
      }
    }
  });
}

}  // namespace rewire::compiler
