// SPDX-License-Identifier: Apache-2.0
//
// Passes that choose kernels of packed weights (rewire.packed.*) share this.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_set>
#include <vector>

#include "rewire/compiler/ir/graph.h"
#include "rewire/compiler/passes/edit.h"

namespace rewire::compiler {

// The most positions of a window that the kernels accept. Convolutions that are not depthwise count rows of
// positions where the window never leaves the image (RowsAreWhole).
inline constexpr std::int64_t kMostTaps = 256;
// Panels are padded to a multiple of this many columns.
inline constexpr std::int64_t kPackedColumns = 16;
constexpr std::int64_t PackedColumns(std::int64_t columns) {
  return (columns + kPackedColumns - 1) / kPackedColumns * kPackedColumns;
}

// The number of positions of the window of weights [M, C, taps...].
std::int64_t TapsOf(const std::vector<std::int64_t>& dims);

// True for weights [channels, 1, taps...] of a convolution with a group for each channel, if the depthwise
// kernels accept the window. With a multiplier there are as many channels for each group.
bool IsDepthwise(const std::vector<std::int64_t>& dims, std::int64_t groups, std::int64_t multiplier = 1);
// True if the kernels of packed integers accept a product or convolution of bytes: its weights have constant
// zero points, and x has one zero point.
bool HasPackableZeros(const Node& node, std::int64_t columns);

// True if the attribute, a list of ints, is missing or holds this number alone.
bool AreAll(const Node& node, const char* attribute, std::int64_t number);

// Makes a node that works on constant weights before all runs. It has no outputs yet.
Node* OnWeights(Graph* graph, const std::string& kernel, Value* weights, std::vector<Attribute> attributes);
// Makes a node that transposes `from` to `to`. `source` names the node of the model that it is made for.
Node* NewTranspose(Graph* graph, Value* from, Value* to, const std::vector<std::int64_t>& perm,
                   const std::string& source);
// Adds an output that is allocated with its type's dimensions.
Value* AddOutput(Graph* graph, Node* node, const std::string& name, Type type);

// Gives the convolutions, in any block, images with the channels last. A transpose is inserted before and
// behind each of them.
void PutChannelsLast(Graph* graph, const std::unordered_set<const Node*>& convolutions);

// A pass that turns kernels into those of packed weights.
class Packing {
 public:
  explicit Packing(Graph* graph) : graph_(*graph), edit_(graph) {}

  // Calls `pack` with every kernel node that no other node has taken over yet. Then the convolutions in
  // `convolutions_` get their channels last.
  template <typename Pack>
  void ForEachKernel(const Pack& pack) {
    ForEachBlock(&graph_.main, [&](Block* block) {
      for (Node* node : block->nodes) {
        if (!edit_.IsErased(node) && node->kind == NodeKind::kKernel) pack(node);
      }
    });
    edit_.Finish();
    PutChannelsLast(&graph_, convolutions_);
  }

 protected:
  // Makes a convolution one by packed weights, with images that have the channels last and the activation
  // that follows.
  void BecomePackedConv(Node* node, const char* kernel, Value* packed);
  // The same for any convolution, with these attributes.
  void BecomePackedImage(Node* node, const char* kernel, Value* packed, std::vector<Attribute> attributes);

  Graph& graph_;
  Edit edit_;
  std::unordered_set<const Node*> convolutions_;
};

}  // namespace rewire::compiler
