// SPDX-License-Identifier: Apache-2.0
//
// Nodes whose outputs are elements of their inputs. Passes move steps past them that keep the order of
// elements, such as rounding and quantization.
#pragma once

#include <cstddef>

#include "rewire/compiler/ir/graph.h"

namespace rewire::compiler {

// How many of the node's first inputs it only moves, or takes the largest elements of; 0 for other nodes.
std::size_t MovedInputs(const Node& node);

}  // namespace rewire::compiler
