// SPDX-License-Identifier: Apache-2.0
//
// About how long a kernel takes on one thread. Passes need this to weigh threads against each other; it is no
// prediction for a certain machine.
#pragma once

#include <optional>

#include "rewire/compiler/ir/graph.h"

namespace rewire::compiler {

// Nanoseconds of the node's kernel, if it is too small to split its work itself. nullopt if it may split it,
// if a shape is not known, or if the time of such a kernel does not follow from shapes.
std::optional<double> TimeOfSmall(const Graph& graph, const Node& node);

}  // namespace rewire::compiler
