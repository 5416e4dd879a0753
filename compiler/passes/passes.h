// SPDX-License-Identifier: Apache-2.0
// Passes over the graph, in the order in which they run. A pass is a function in a file of its own and a row
// in passes.cc; each can be switched off by its name, and a program is right without any of them.
#pragma once

#include <span>

#include "compiler/ir/graph.h"

namespace rewire::compiler {

struct Pass {
  const char* name;
  void (*run)(Graph* graph);
};

std::span<const Pass> Passes();

// Takes out what no output depends on. Before the others too, they need not look at it.
void RemoveDeadCode(Graph* graph);
// Nodes that compute the same from the same become one.
void ShareCommonSubexpressions(Graph* graph);

}  // namespace rewire::compiler
