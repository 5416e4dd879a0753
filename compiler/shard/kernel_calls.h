// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <initializer_list>
#include <string_view>

#include "rewire/compiler/ir/graph.h"

namespace rewire::compiler {

// True if the node calls one of these kernels.
inline bool CallsOneOf(const Node& node, std::initializer_list<std::string_view> kernels) {
  return node.kind == NodeKind::kKernel &&
         std::find(kernels.begin(), kernels.end(), node.kernel) != kernels.end();
}

}  // namespace rewire::compiler
