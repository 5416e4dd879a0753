// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rewire/compiler/ir/graph.h"

namespace rewire::compiler {

// Lets a loop update a value that it carries, such as a cache, in the memory of the first one. Must run
// behind all passes that move nodes.
void CarryInPlace(Graph* graph);

}  // namespace rewire::compiler
