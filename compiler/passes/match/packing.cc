// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/passes/match/packing.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "rewire/compiler/passes/match/follow_up.h"
#include "rewire/compiler/passes/match/quantization.h"
#include "rewire/kernels/contract/movement.h"

namespace rewire::compiler {

Node* NewTranspose(Graph* graph, Value* from, Value* to, const std::vector<std::int64_t>& perm,
                   const std::string& source) {
  Node* node = graph->NewNode(NodeKind::kKernel);
  node->kernel = names::kTranspose;
  node->attributes.push_back({"perm", perm});
  node->inputs.push_back(from);
  node->outputs.push_back(to);
  node->extents.push_back({to->type.dims, nullptr});
  node->source = source;
  to->producer = node;
  return node;
}

namespace {

using Ints = std::vector<std::int64_t>;

Shape ChannelsLastOf(Shape dims) {
  std::rotate(dims.begin() + 1, dims.begin() + 2, dims.end());
  return dims;
}

}  // namespace

std::int64_t TapsOf(const Ints& dims) {
  return std::accumulate(dims.begin() + 2, dims.end(), std::int64_t{1},
                         [](std::int64_t a, std::int64_t b) { return a * b; });
}

bool IsDepthwise(const Ints& dims, std::int64_t groups, std::int64_t multiplier) {
  if (groups < 2 || dims.size() < 3 || dims.size() > 5 || dims[1] != 1) return false;
  if (dims[0] % multiplier != 0 || dims[0] / multiplier != groups) return false;
  const std::int64_t taps = TapsOf(dims);
  return taps >= 1 && taps <= kMostTaps;
}

bool HasPackableZeros(const Node& node, std::int64_t columns) {
  const Value *x_zero = OptionalInput(node, 2), *w_zero = OptionalInput(node, 3);
  if (node.extents.size() != 1 || node.extents[0].shape != nullptr || !IsByte(node.inputs[0])) return false;
  if (x_zero != nullptr && !HasOneElement(x_zero)) return false;
  if (w_zero == nullptr) return true;
  return ElementsOf(w_zero) != nullptr && (HasOneElement(w_zero) || w_zero->constant->shape == Ints{columns});
}

bool AreAll(const Node& node, const char* attribute, std::int64_t number) {
  const std::optional<Ints> values = IntsAttribute(node, attribute);
  return !values ||
         std::all_of(values->begin(), values->end(), [=](std::int64_t value) { return value == number; });
}

Node* OnWeights(Graph* graph, const std::string& kernel, Value* weights, std::vector<Attribute> attributes) {
  Node* node = graph->NewNode(NodeKind::kKernel);
  node->kernel = kernel;
  node->attributes = std::move(attributes);
  node->inputs.push_back(weights);
  node->source = weights->name;
  graph->init.nodes.push_back(node);
  return node;
}

Value* AddOutput(Graph* graph, Node* node, const std::string& name, Type type) {
  Value* output = graph->NewValue(name, std::move(type));
  output->producer = node;
  node->outputs.push_back(output);
  node->extents.push_back({output->type.dims, nullptr});
  return output;
}

void Packing::BecomePackedConv(Node* node, const char* kernel, Value* packed) {
  const Ints dims = node->inputs[1]->constant->shape;
  std::vector<Attribute> attributes = {{"channels", dims[0]},
                                       {"kernel_shape", Ints(dims.begin() + 2, dims.end())}};
  for (const char* name : {"strides", "dilations", "pads", "auto_pad"}) {
    if (const Attribute* given = FindAttribute(*node, name)) attributes.push_back(*given);
  }
  BecomePackedImage(node, kernel, packed, std::move(attributes));
}

void Packing::BecomePackedImage(Node* node, const char* kernel, Value* packed,
                                std::vector<Attribute> attributes) {
  node->inputs[1] = packed;
  node->kernel = kernel;
  node->attributes = std::move(attributes);
  TakeMovedActivation(&edit_, node);
  convolutions_.insert(node);
}

void PutChannelsLast(Graph* graph, const std::unordered_set<const Node*>& convolutions) {
  ForEachBlock(&graph->main, [&](Block* block) {
    std::vector<Node*> nodes;
    for (Node* node : block->nodes) {
      if (!convolutions.contains(node)) {
        nodes.push_back(node);
        continue;
      }
      Value* x = node->inputs[0];
      Value* y = node->outputs[0];
      Value* x_last = graph->NewValue(x->name, TensorOf(x->type.dtype, ChannelsLastOf(x->type.dims)));
      Value* y_last = graph->NewValue(y->name, TensorOf(y->type.dtype, ChannelsLastOf(y->type.dims)));
      Ints to_last(x->type.dims.size()), to_first;
      std::iota(to_last.begin(), to_last.end(), 0);
      to_first = to_last;
      std::rotate(to_last.begin() + 1, to_last.begin() + 2, to_last.end());
      std::rotate(to_first.begin() + 1, to_first.end() - 1, to_first.end());
      nodes.push_back(NewTranspose(graph, x, x_last, to_last, node->source));
      node->inputs[0] = x_last;
      node->outputs[0] = y_last;
      y_last->model_name = y->model_name;
      y_last->channels_last = true;
      y_last->producer = node;
      node->extents[0].dims = ChannelsLastOf(node->extents[0].dims);
      graph->MoveSymbols(y, y_last, to_last);
      nodes.push_back(node);
      nodes.push_back(NewTranspose(graph, y_last, y, to_first, node->source));
    }
    block->nodes = std::move(nodes);
  });
}

}  // namespace rewire::compiler
