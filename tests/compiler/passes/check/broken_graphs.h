// SPDX-License-Identifier: Apache-2.0
// Ways of breaking a graph, each of which the check of the passes must find.
#pragma once

#include <string>
#include <vector>

#include "rewire/compiler/ir/graph.h"

namespace rewire::test {

struct Breaking {
  const char* name;
  // False, and the graph unchanged, if the graph has nothing to break in this way.
  bool (*apply)(compiler::Graph* graph);
  const char* message;  // part of what the check says of it
};

const std::vector<Breaking>& Breakings();

}  // namespace rewire::test
