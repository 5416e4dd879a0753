// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "compiler/ir/graph.h"

namespace rewire::compiler {

// Whether the node gives the same whenever its inputs are the same: what may be computed once, or beforehand.
inline bool IsPure(const Node& node) {
  constexpr std::string_view kRandom[] = {"rewire.random_normal", "rewire.random_uniform", "rewire.bernoulli",
                                          "rewire.multinomial"};
  for (const std::string_view kernel : kRandom) {
    if (node.kernel == kernel) return false;
  }
  return true;
}

}  // namespace rewire::compiler
