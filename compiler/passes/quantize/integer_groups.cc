// SPDX-License-Identifier: Apache-2.0
//
// Runs integer convolutions of groups as convolutions of f32, for which there are faster kernels. The result
// is exact, because the sums are so short that f32 holds every partial sum exactly. Depthwise ones stay,
// because pack-integers has a kernel for them. So do groups of one channel with several output channels: they
// have so few products that conversions to floats and back would take longer.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rewire/compiler/passes/match/packing.h"
#include "rewire/compiler/passes/match/quantization.h"
#include "rewire/compiler/passes/passes.h"
#include "rewire/kernels/contract/convolution.h"
#include "rewire/kernels/contract/elementwise.h"
#include "rewire/kernels/contract/product.h"
#include "rewire/kernels/contract/quantization.h"

namespace rewire::compiler {
namespace {

using Ints = std::vector<std::int64_t>;

// Products of values minus their zero points are at most 255 * 255. f32 holds whole numbers up to 2^24.
constexpr std::int64_t kMostExactDepth = (std::int64_t{1} << 24) / (255 * 255);

std::int64_t ByteAt(const Value& value, std::size_t i) {
  const auto byte = static_cast<std::uint8_t>(value.constant->bytes.view[i]);
  return value.type.dtype == kInt8 ? std::int64_t{static_cast<std::int8_t>(byte)} : std::int64_t{byte};
}

bool IsExact(const Node& node) {
  if (node.kind != NodeKind::kKernel || node.kernel != names::kConvInteger || node.extents.size() != 1 ||
      IntAttribute(node, "group", 1) < 2) {
    return false;
  }
  const Value* weights = node.inputs[1];
  if (ElementsOf(weights) == nullptr || !IsByte(weights) || !IsByte(node.inputs[0])) return false;
  const Ints& dims = weights->constant->shape;
  if (dims.size() < 3 || dims[0] < 1 || dims[1] * TapsOf(dims) < 1) return false;
  const std::int64_t groups = IntAttribute(node, "group", 1);
  if (dims[1] == 1 && (dims[0] != groups || HasPackableZeros(node, dims[0]))) return false;
  const Value *x_zero = OptionalInput(node, 2), *w_zero = OptionalInput(node, 3);
  if (x_zero != nullptr && (!x_zero->type.ranked || x_zero->type.rank() > 1)) return false;
  if (w_zero != nullptr && ElementsOf(w_zero) == nullptr) return false;
  return dims[1] * TapsOf(dims) <= kMostExactDepth;
}

class Groups {
 public:
  explicit Groups(Graph* graph) : graph_(*graph) {}

  void Run() {
    ForEachBlock(&graph_.main, [&](Block* block) {
      std::vector<Node*> nodes;
      for (Node* node : block->nodes) {
        if (IsExact(*node)) {
          Replace(*node, &nodes);
        } else {
          nodes.push_back(node);
        }
      }
      block->nodes = std::move(nodes);
    });
  }

 private:
  void Replace(const Node& node, std::vector<Node*>* nodes) {
    Value* x = node.inputs[0];
    Value* sums = node.outputs[0];
    Value* x_zero = OptionalInput(node, 2);
    const Ints of_scale = x_zero != nullptr && x_zero->type.rank() == 1 ? Ints{1} : Ints();
    std::vector<Value*> inputs = {x, NewFloats(&graph_, x->name + ".scale", of_scale, {1.0F})};
    if (x_zero != nullptr) inputs.push_back(x_zero);
    Value* floats = graph_.NewValue(x->name, TensorOf(kFloat32, x->type.dims));
    Add(names::kDequantizeLinear, {}, std::move(inputs), floats, {x->type.dims, nullptr}, node.source, nodes);
    Value* products = graph_.NewValue(sums->name, TensorOf(kFloat32, sums->type.dims));
    graph_.MoveSymbols({{sums, products}});  // which is made before
    Add(names::kConv, node.attributes, {floats, Weights(node)}, products, node.extents[0], node.source,
        nodes);
    Add(names::kCast, {}, {products}, sums, node.extents[0], node.source, nodes);
  }

  // Less their zeros.
  Value* Weights(const Node& node) {
    const Value& weights = *node.inputs[1];
    const Value* zero = OptionalInput(node, 3);
    const std::size_t size = weights.constant->bytes.view.size();
    const std::size_t channel = size / static_cast<std::size_t>(weights.constant->shape[0]);
    std::vector<float> elements;
    elements.reserve(size);
    for (std::size_t i = 0; i < size; ++i) {
      const bool one = zero != nullptr && zero->constant->bytes.view.size() == 1;
      const std::int64_t shift = zero == nullptr ? 0 : ByteAt(*zero, one ? 0 : i / channel);
      elements.push_back(static_cast<float>(ByteAt(weights, i) - shift));
    }
    return NewFloats(&graph_, weights.name, weights.constant->shape, elements);
  }

  void Add(const std::string& kernel, std::vector<Attribute> attributes, std::vector<Value*> inputs,
           Value* output, Node::Extent extent, const std::string& source, std::vector<Node*>* nodes) {
    Node* node = graph_.NewNode(NodeKind::kKernel);
    node->kernel = kernel;
    node->attributes = std::move(attributes);
    node->inputs = std::move(inputs);
    node->outputs.push_back(output);
    node->extents.push_back(std::move(extent));
    node->source = source;
    output->producer = node;
    nodes->push_back(node);
  }

  Graph& graph_;
};

}  // namespace

void RunIntegerGroups(Graph* graph) { Groups(graph).Run(); }

}  // namespace rewire::compiler
