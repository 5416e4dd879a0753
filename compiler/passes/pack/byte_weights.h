// SPDX-License-Identifier: Apache-2.0
// Finds weights that the model has in 8 bits, for the pass pack-bytes.
#pragma once

#include "rewire/compiler/ir/graph.h"

namespace rewire::compiler {

// The kernel that computed this value, when compiling too; null if none did.
inline const Node* SourceOf(const Value* value) {
  const Node* node = value->producer != nullptr ? value->producer : value->folded;
  return node != nullptr && node->kind == NodeKind::kKernel ? node : nullptr;
}

// Makes a layer by weights of 8 bits of an LSTM by such weights as floats; false if it has none.
bool PackLstmBytes(Graph* graph, Node* node);

}  // namespace rewire::compiler
