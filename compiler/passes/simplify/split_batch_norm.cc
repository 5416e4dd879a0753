// SPDX-License-Identifier: Apache-2.0
//
// Turns batch normalization by constants into a product and a sum, as a factor and a term for each channel.
// They work with the channels last, and in one pass over memory with what is elementwise around them.
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "rewire/compiler/passes/edit.h"
#include "rewire/compiler/passes/passes.h"
#include "rewire/compiler/passes/simplify/batch_norm.h"
#include "rewire/kernels/contract/elementwise.h"
#include "rewire/kernels/contract/normalization.h"

namespace rewire::compiler {

std::optional<Affine> AffineOfBatchNorm(const Node& node, std::int64_t channels) {
  const auto count = static_cast<std::size_t>(channels);
  const float* values[4];
  for (std::size_t i = 0; i < 4; ++i) {
    values[i] = FloatsOf(node.inputs[i + 1]);
    if (values[i] == nullptr || node.inputs[i + 1]->constant->shape != std::vector{channels})
      return std::nullopt;
  }
  const double epsilon = FloatAttribute(node, "epsilon", 1e-5);
  Affine affine{std::vector<float>(count), std::vector<float>(count)};
  for (std::size_t c = 0; c < count; ++c) {
    const double factor = values[0][c] / std::sqrt(values[3][c] + epsilon);
    affine.factor[c] = static_cast<float>(factor);
    affine.term[c] = static_cast<float>(values[1][c] - values[2][c] * factor);
  }
  return affine;
}

namespace {

// Puts the product in front of the node, which becomes the sum.
void Split(Node* node, Graph* graph, std::vector<Node*>* nodes) {
  const Value* scale = node->inputs[1];
  const std::int64_t channels = scale->constant->shape[0];
  // One number for several channels would be broadcast. The kernel refuses it.
  if (!node->inputs[0]->type.dims[1].Is(channels)) return;
  const std::optional<Affine> affine = AffineOfBatchNorm(*node, channels);
  if (!affine) return;
  std::vector<std::int64_t> dims(static_cast<std::size_t>(node->outputs[0]->type.rank() - 1), 1);
  dims[0] = channels;
  Node* product = graph->NewNode(NodeKind::kKernel);
  Value* scaled = graph->NewValue(node->inputs[0]->name + ".scaled", node->outputs[0]->type);
  scaled->producer = product;
  product->kernel = names::kMul;
  product->source = node->source;
  product->inputs = {node->inputs[0], NewFloats(graph, scale->name + ".factor", dims, affine->factor)};
  product->outputs = {scaled};
  product->extents = node->extents;
  nodes->push_back(product);
  node->kernel = names::kAdd;
  node->attributes.clear();
  node->inputs = {scaled, NewFloats(graph, scale->name + ".term", dims, affine->term)};
}

// Whether the channels are an axis, and whether a program knows how large the result is.
bool IsPlain(const Node& node) {
  return node.kind == NodeKind::kKernel && node.kernel == names::kBatchNorm && node.outputs.size() == 1 &&
         node.outputs[0]->type.rank() >= 2 && node.extents.size() == 1 && node.extents[0].shape == nullptr &&
         node.inputs[1]->IsConstant() && node.inputs[1]->constant->shape.size() == 1;
}

}  // namespace

void SplitBatchNorm(Graph* graph) {
  ForEachBlock(&graph->main, [&](Block* block) {
    std::vector<Node*> nodes;
    for (Node* node : block->nodes) {
      if (IsPlain(*node)) Split(node, graph, &nodes);
      nodes.push_back(node);
    }
    block->nodes = std::move(nodes);
  });
}

}  // namespace rewire::compiler
