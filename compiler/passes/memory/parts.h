// SPDX-License-Identifier: Apache-2.0
//
// Nodes that join tensors, or split one, along the outermost axis. What they copy may be placed at the
// destination from the start.
#pragma once

#include <cstdint>
#include <vector>

#include "rewire/compiler/ir/graph.h"

namespace rewire::compiler {

// `inner` is a contiguous part of `outer`, starting at byte `offset`.
struct Part {
  const Value* inner = nullptr;
  const Value* outer = nullptr;
  std::uint64_t offset = 0;
};

// One part for each tensor that the node copies: the inputs of a concatenation, the outputs of a split or
// slice. Empty for other nodes, if a copy is not contiguous, or if a shape is unknown. The stock kernels of
// the host skip a copy whose source and destination are the same. Those of devices do not, and have no parts.
std::vector<Part> PartsOf(const Node& node);

}  // namespace rewire::compiler
