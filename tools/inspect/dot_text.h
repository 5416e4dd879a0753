// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "rewire/base/span.h"
#include "rewire/tools/inspect/function_graph.h"

namespace rewire::tools {

// The graphs in Graphviz's language DOT, each as a cluster. Values are solid edges, sizes of memory dotted
// ones, control dashed ones.
std::string DotText(Span<const FunctionGraph> graphs);

}  // namespace rewire::tools
