// SPDX-License-Identifier: Apache-2.0
// What passes that choose kernels of packed weights (rewire.packed.*) have in common.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_set>
#include <vector>

#include "compiler/ir/graph.h"

namespace rewire::compiler {

// More positions of a window the kernels do not take.
inline constexpr std::int64_t kMostTaps = 256;
// Panels are filled up to a multiple of this many columns.
inline constexpr std::int64_t kPackedColumns = 16;
constexpr std::int64_t PackedColumns(std::int64_t columns) {
  return (columns + kPackedColumns - 1) / kPackedColumns * kPackedColumns;
}

// Positions of the window of weights [M, C, taps...].
std::int64_t TapsOf(const std::vector<std::int64_t>& dims);

// A node that works on constant weights ahead of all runs, still without outputs.
Node* OnWeights(Graph* graph, const std::string& kernel, Value* weights, std::vector<Attribute> attributes);
// A new output, allocated with its type's dimensions.
Value* AddOutput(Graph* graph, Node* node, const std::string& name, Type type);

// The convolutions, in whatever block, get their images with the channels last: a transpose stands before and
// behind each of them.
void PutChannelsLast(Graph* graph, const std::unordered_set<const Node*>& convolutions);

}  // namespace rewire::compiler
