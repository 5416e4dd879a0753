// SPDX-License-Identifier: Apache-2.0
//
// Merges a bias, an activation, or a factor and a term into the product before it. The product's kernel
// applies them to each element before it writes the element, so the nodes that did it are removed.
#pragma once

#include "rewire/compiler/passes/edit.h"

namespace rewire::compiler {

// True if the first outputs of both nodes have the same dimensions, and no shape function is needed to
// compute them. Then `a` can take over the output of `b`.
bool SameShape(const Node& a, const Node& b);

// Looks for a bias: the only user of the node's output adds a constant to it, one term for each of the
// `columns` elements of the last axis. If so, removes that user and returns the terms as a constant, which
// the caller gives to the node. Otherwise returns null and changes nothing.
Value* TakeBias(Edit* edit, Node* node, std::int64_t columns);

// If the only user of the node's output is an activation that product kernels know, sets it as attributes of
// the node, removes that user, and returns true. Otherwise changes nothing.
bool TakeActivation(Edit* edit, Node* node);

// The same for factors and terms: the only user of the node's output multiplies, divides, adds or subtracts a
// constant of one element. As long as that is so, the node does it, and the user is removed. Kernels of
// rewire.packed know the attributes post_scale and post_shift that this sets.
void TakeMoves(Edit* edit, Node* node);

// An activation, and what moves its result.
void TakeMovedActivation(Edit* edit, Node* node);

// A constant of `count` zeros, named `name`.bias.
Value* ZeroBias(Graph* graph, const std::string& name, std::int64_t count);

}  // namespace rewire::compiler
