// SPDX-License-Identifier: Apache-2.0
//
// Finds nodes behind a product that the product's kernel can do to each element before it writes it: bias and
// activation.
#pragma once

#include "rewire/compiler/passes/edit.h"

namespace rewire::compiler {

// True if both outputs have the same dimensions, which are known without running a shape function. Then only
// a kernel lies between them.
bool SameShape(const Node& a, const Node& b);

// Takes the bias: a term for each of the last axis' `columns` that the only user of the node's output adds.
// That user is then removed. Null: there is none.
Value* TakeBias(Edit* edit, Node* node, std::int64_t columns);

// Gives the node the activation of its only user, as attributes. That user is then removed.
void TakeActivation(Edit* edit, Node* node);

// A constant of zeros.
Value* ZeroBias(Graph* graph, const std::string& name, std::int64_t count);

}  // namespace rewire::compiler
