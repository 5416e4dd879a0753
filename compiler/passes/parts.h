// SPDX-License-Identifier: Apache-2.0
// Nodes that join tensors end to end, or take them out of one, along the outermost axis there is: what they
// copy may lie where it is copied to from the start.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/ir/graph.h"

namespace rewire::compiler {

// `inner` is a stretch of `outer`, from byte `offset` on.
struct Part {
  const Value* inner = nullptr;
  const Value* outer = nullptr;
  std::uint64_t offset = 0;
};

// One for each tensor that the node copies: a concatenation's inputs, the outputs of a split or a slice.
// Empty for other nodes, where a copy is no stretch, and where a shape is not known. A copy is left out by
// the stock kernels that find it done.
std::vector<Part> PartsOf(const Node& node);

}  // namespace rewire::compiler
