// SPDX-License-Identifier: Apache-2.0
//
// Symbols that stand for an expression of other symbols. Graph::OwnDims makes them, and so do dimensions that
// broadcast.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "rewire/compiler/ir/graph.h"

namespace rewire::compiler {

// Names and expressions, in the order of the values in whose shapes they occur. Expressions may contain other
// symbols: dimensions of inputs, and sizes that only a run knows.
std::vector<std::pair<std::string, DimExpr>> SymbolDefinitions(const Graph& graph);

}  // namespace rewire::compiler
