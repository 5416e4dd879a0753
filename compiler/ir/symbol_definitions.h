// SPDX-License-Identifier: Apache-2.0
// Symbols that stand for an expression of others: Graph::OwnDims makes them, and a dimension that broadcasts.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "compiler/ir/graph.h"

namespace rewire::compiler {

// Name and expression, in the order in which the values are made in whose shapes they stand. Expressions may
// hold symbols that are none of these: dimensions of inputs, and what only a run knows.
std::vector<std::pair<std::string, DimExpr>> SymbolDefinitions(const Graph& graph);

}  // namespace rewire::compiler
