// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "rewire/compiler/ir/graph.h"

namespace rewire::compiler {

// The operation of a node, without its operands: "rewire.gather {axis=1}", "field 2".
std::string OperationText(const Node& node);

}  // namespace rewire::compiler
