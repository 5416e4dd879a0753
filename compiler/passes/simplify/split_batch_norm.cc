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

std::optional<AffineConstants> AffineOfBatchNorm(const Node& node, std::int64_t channels, Graph* graph) {
  const std::vector dims = {channels};
  bool at_load = false;
  const float* values[4];
  for (std::size_t i = 0; i < 4; ++i) {
    const Value* input = node.inputs[i + 1];
    if (!IsFloats(input) || input->constant->shape != dims) return std::nullopt;
    values[i] = FloatsOf(input);
    at_load = at_load || input->at_load;
  }
  Value *scale = node.inputs[1], *bias = node.inputs[2], *mean = node.inputs[3], *variance = node.inputs[4];
  const double epsilon = FloatAttribute(node, "epsilon", 1e-5);
  if (at_load) {
    const auto folded = [&](const char* kernel, Value* a, Value* b) {
      return FoldedAtLoad(graph, kernel, {a, b}, dims);
    };
    Value* least = NewFloats(graph, scale->name + ".epsilon", {1}, {static_cast<float>(epsilon)});
    Value* deviation = FoldedAtLoad(graph, names::kSqrt, {folded(names::kAdd, variance, least)}, dims);
    Value* factor = folded(names::kDiv, scale, deviation);
    return AffineConstants{factor, folded(names::kSub, bias, folded(names::kMul, mean, factor))};
  }
  std::vector<float> factors(static_cast<std::size_t>(channels)), terms(factors.size());
  for (std::size_t c = 0; c < factors.size(); ++c) {
    const double factor = values[0][c] / std::sqrt(values[3][c] + epsilon);
    factors[c] = static_cast<float>(factor);
    terms[c] = static_cast<float>(values[1][c] - values[2][c] * factor);
  }
  return AffineConstants{NewFloats(graph, scale->name + ".factor", dims, factors),
                         NewFloats(graph, scale->name + ".term", dims, terms)};
}

namespace {

// Puts the product in front of the node, which becomes the sum.
void Split(Node* node, Graph* graph, std::vector<Node*>* nodes) {
  const Value* scale = node->inputs[1];
  const std::int64_t channels = scale->constant->shape[0];
  // One number for several channels would be broadcast. The kernel refuses it.
  if (!node->inputs[0]->type.dims[1].Is(channels)) return;
  const std::optional<AffineConstants> affine = AffineOfBatchNorm(*node, channels, graph);
  if (!affine) return;
  std::vector<std::int64_t> dims(static_cast<std::size_t>(node->outputs[0]->type.rank() - 1), 1);
  dims[0] = channels;
  Node* product = graph->NewNode(NodeKind::kKernel);
  Value* scaled = graph->NewValue(node->inputs[0]->name + ".scaled", node->outputs[0]->type);
  scaled->producer = product;
  product->kernel = names::kMul;
  product->source = node->source;
  product->inputs = {node->inputs[0], graph->NewView(affine->factor->name, affine->factor, dims)};
  product->outputs = {scaled};
  product->extents = node->extents;
  nodes->push_back(product);
  node->kernel = names::kAdd;
  node->attributes.clear();
  node->inputs = {scaled, graph->NewView(affine->term->name, affine->term, dims)};
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
