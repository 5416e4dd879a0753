// SPDX-License-Identifier: Apache-2.0
//
// Turns batch normalization by constants into a product and a sum, as a factor and a term for each channel.
// They work with the channels last, and in one pass over memory with what is elementwise around them.
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "rewire/compiler/passes/edit.h"
#include "rewire/compiler/passes/node_attributes.h"
#include "rewire/compiler/passes/passes.h"
#include "rewire/compiler/passes/simplify/batch_norm.h"
#include "rewire/kernels/contract/elementwise.h"
#include "rewire/kernels/contract/normalization.h"

namespace rewire::compiler {

namespace {

// Computes in f64 when a program is linked, as is done below for constants that are known: results are the
// same to the bit.
AffineConstants AffineAtLoad(const Node& node, double epsilon, const std::vector<std::int64_t>& dims,
                             Graph* graph) {
  const auto folded = [&](const char* kernel, std::vector<Value*> inputs, DLDataType dtype) {
    Value* result = FoldedAtLoad(graph, kernel, std::move(inputs), dims);
    BecomeAtLoad(result, dtype, dims);
    return result;
  };
  const auto in_double = [&](const char* kernel, std::vector<Value*> inputs) {
    return folded(kernel, std::move(inputs), kFloat64);
  };
  const auto wide = [&](Value* input) { return in_double(names::kCast, {input}); };
  Value* least = graph->NewValue(node.inputs[1]->name + ".epsilon", TensorOf(kFloat64, ShapeOfInts({1})));
  HostTensor tensor;
  tensor.dtype = kFloat64;
  tensor.shape = {1};
  tensor.bytes = CopyBytes({reinterpret_cast<const std::byte*>(&epsilon), sizeof(epsilon)});
  least->constant = std::move(tensor);
  Value* deviation = in_double(names::kSqrt, {in_double(names::kAdd, {wide(node.inputs[4]), least})});
  Value* factor = in_double(names::kDiv, {wide(node.inputs[1]), deviation});
  Value* shift = in_double(names::kMul, {wide(node.inputs[3]), factor});
  Value* term = in_double(names::kSub, {wide(node.inputs[2]), shift});
  return {folded(names::kCast, {factor}, kFloat32), folded(names::kCast, {term}, kFloat32)};
}

}  // namespace

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
  const Value* scale = node.inputs[1];
  const double epsilon = AttributesOf<contract::BatchNormAttributes>(node).epsilon;
  if (at_load) return AffineAtLoad(node, epsilon, dims, graph);
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
