// SPDX-License-Identifier: Apache-2.0
#include "rewire/vm/plan/function_summary.h"

namespace rewire {

ResultShape::ResultShape(const Type& type) : leaves(Leaves(type)), ends(type.nodes.size()) {
  // From the last node to the first. So the subtrees behind a node are already known, and each node is
  // visited once, by its parent.
  for (auto node = static_cast<std::uint32_t>(type.nodes.size()); node-- > 0;) {
    std::uint32_t end = node + 1;
    const std::uint32_t fields = type.nodes[node].kind == TypeKind::kAdt ? type.nodes[node].field_count : 0;
    for (std::uint32_t i = 0; i < fields; ++i) end = ends[end];
    ends[node] = end;
  }
}

FunctionSummary UnknownSummary(const ResultShape& result) {
  LeafSummary leaf;
  leaf.unknown = true;
  leaf.all_inputs = true;
  return FunctionSummary(result.leaves.size(), leaf);
}

}  // namespace rewire
