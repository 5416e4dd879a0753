// SPDX-License-Identifier: Apache-2.0
//
// A node of the graph names all nodes of the model that it stands for, also where a pass makes one of several
// (executable_format/names/source_note.h).
#pragma once

#include <vector>

#include "rewire/compiler/ir/graph.h"

namespace rewire::compiler {

// The node computes from `inputs` what it computes from nodes before it until now. It gets the sources of
// those. Call it before the node's inputs change. `inputs` may have nulls.
void AddSourcesBehind(Node* node, const std::vector<const Value*>& inputs);

}  // namespace rewire::compiler
