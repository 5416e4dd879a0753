// SPDX-License-Identifier: Apache-2.0
// What kernels of products do with each element on the way out, found in the nodes that follow them.
#pragma once

#include "compiler/passes/edit.h"

namespace rewire::compiler {

// That nothing but a kernel lies between: both outputs have the same dimensions, known without running a
// shape function.
bool SameShape(const Node& a, const Node& b);

// The term for each of the last axis' `columns` that the only user of the node's output adds; that node is
// gone then. Null: there is none.
Value* TakeBias(Edit* edit, Node* node, std::int64_t columns);

// Gives the node the activation that its only user computes, as attributes; that node is gone then.
void TakeActivation(Edit* edit, Node* node);

// A constant of zeros.
Value* ZeroBias(Graph* graph, const std::string& name, std::int64_t count);

}  // namespace rewire::compiler
