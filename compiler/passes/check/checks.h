// SPDX-License-Identifier: Apache-2.0
//
// The parts of GraphCheck (check_graph.h), and the form of what they report.
#pragma once

#include <string>

#include "rewire/base/status.h"
#include "rewire/compiler/ir/graph.h"
#include "rewire/compiler/ir/shape_rules.h"

namespace rewire::compiler {

Status CheckReads(const Graph& graph);
Status CheckTypes(const Graph& graph);
// Without `reshapes`, a reshape may have another number of elements than its input.
Status CheckShapes(const Graph& graph, bool reshapes);
Status CheckSides(const Graph& graph);
Status CheckMemory(const Graph& graph);

// "rewire.add of Add 'sum': value 'y' (f32[2]): expected ..., given ...". Null: the graph itself, and no
// value.
Status Broken(const Node* node, const Value* value, const std::string& expected, const std::string& given);

// Calls `visit` with every node of the block and of those inside it, as long as it returns no error.
template <typename Visit>
Status ForEachNode(const Block& block, const Visit& visit) {
  for (const Node* node : block.nodes) {
    if (Status ok = visit(*node); !ok) return ok;
    for (const Block& inner : node->blocks) {
      if (Status ok = ForEachNode(inner, visit); !ok) return ok;
    }
  }
  return {};
}

}  // namespace rewire::compiler
