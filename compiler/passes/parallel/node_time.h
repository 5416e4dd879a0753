// SPDX-License-Identifier: Apache-2.0
//
// About how long a kernel takes on one thread. Passes need this to weigh threads, or work when a program is
// loaded, against what they save; it is no prediction for a certain machine.
#pragma once

#include <optional>

#include "rewire/compiler/ir/graph.h"

namespace rewire::compiler {

// Nanoseconds of the node's kernel. nullopt if a shape is not known, or if the time of such a kernel does not
// follow from shapes.
std::optional<double> TimeOf(const Graph& graph, const Node& node);
// About how many products the node's kernel does for each element of its first input; 0 for kernels without
// products, and where a rank is not known. Open dimensions count as some usual size.
double ProductsOfInput(const Graph& graph, const Node& node);
// The same as TimeOf, if the kernel is too small to split its work itself.
std::optional<double> TimeOfSmall(const Graph& graph, const Node& node);

}  // namespace rewire::compiler
