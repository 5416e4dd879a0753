// SPDX-License-Identifier: Apache-2.0
//
// Removes transposes in front of products of integers by constant weights. If the transpose moves elements
// within rows of the product alone, the rows of the weights are put in the order that the elements have
// without it. The transpose becomes a reshape, which costs nothing.
//
// Sums of integers are the same in any order. Sums of floats are not, so products of floats keep theirs.
//
// Between the transpose and the product there may be reshapes, and nodes that treat all elements alike.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_set>
#include <utility>
#include <vector>

#include "rewire/compiler/ir/kernel_traits.h"
#include "rewire/compiler/passes/edit.h"
#include "rewire/compiler/passes/layout/image_axes.h"
#include "rewire/compiler/passes/match/packing.h"
#include "rewire/compiler/passes/match/quantization.h"
#include "rewire/compiler/passes/passes.h"
#include "rewire/kernels/contract/indexing.h"
#include "rewire/kernels/contract/movement.h"
#include "rewire/kernels/contract/product.h"
#include "rewire/kernels/contract/quantization.h"

namespace rewire::compiler {
namespace {

class WeightPermuting {
 public:
  explicit WeightPermuting(Graph* graph) : graph_(*graph), edit_(graph) {}

  void Run() {
    ForEachBlock(&graph_.main, [&](Block* block) {
      for (Node* node : block->nodes) {
        std::size_t at = 0;
        Node* reader = ReaderOfWeights(node, &at);
        // There may be another transpose in front of the one that became a reshape.
        while (reader != nullptr && Permute(*node, reader, at)) continue;
      }
    });
  }

 private:
  // The node that reads the weights [depth, columns] of a product of integers: the one that packs them, or
  // the product, as its input `*at`. Null for anything else.
  Node* ReaderOfWeights(Node* node, std::size_t* at) const {
    if (node->kind != NodeKind::kKernel || node->inputs.size() < 2) return nullptr;
    Node* reader = node;
    *at = 1;
    if (node->kernel == names::kPackedMatMulInteger) {
      reader = node->inputs[1]->producer;
      *at = 0;
      if (reader == nullptr || reader->kernel != names::kPackedPackIntegers ||
          edit_.UseCount(node->inputs[1]) != 1) {
        return nullptr;
      }
    } else if (node->kernel != names::kMatMulInteger) {
      return nullptr;
    }
    const Value* weights = reader->inputs[*at];
    const bool is_matrix = weights->type.ranked && weights->type.rank() == 2;
    return is_matrix && (weights->IsConstant() || permuted_.contains(weights)) ? reader : nullptr;
  }

  // False, and nothing is changed, if no transpose can be removed.
  bool Permute(const Node& product, Node* reader, std::size_t at) {
    const std::optional<std::int64_t> depth = reader->inputs[at]->type.dims[0].constant();
    std::vector<Node*> passed;  // the product's end first
    Node* transpose = product.inputs[0]->producer;
    const Node* user = &product;
    for (; transpose != nullptr && PassesOn(*transpose); transpose = transpose->inputs[0]->producer) {
      if (edit_.OnlyUser(transpose->outputs[0]) != user) return false;
      passed.push_back(transpose);
      user = transpose;
    }
    if (!depth || !IsTranspose(transpose) || edit_.OnlyUser(transpose->outputs[0]) != user) return false;
    const std::optional<Ints> order = OrderOf(*transpose, *depth);
    if (!order) return false;
    PermuteRows(reader, at, *order);
    transpose->kind = NodeKind::kReshape;
    transpose->kernel.clear();
    transpose->attributes.clear();
    passed.push_back(transpose);
    for (const Node* node : passed) node->outputs[0]->model_name.clear();
    return true;
  }

  // Whether the node gives each element of its first input by itself, in the same order.
  bool PassesOn(const Node& node) const {
    if (node.outputs.size() != 1 || node.returns) return false;
    if (node.kind == NodeKind::kReshape) return true;
    if (node.kind != NodeKind::kKernel) return false;
    if (node.kernel == names::kQuantizeLinear || node.kernel == names::kDequantizeLinear)
      return QuantizationOf(node).has_value();
    return node.kernel == names::kMapBytes || IsElementwise(graph_, node, 1);
  }

  static bool IsTranspose(const Node* node) {
    return node != nullptr && node->kind == NodeKind::kKernel && node->kernel == names::kTranspose &&
           node->inputs[0]->type.ranked && node->extents.size() == 1 && node->extents[0].shape == nullptr &&
           IntsAttribute(*node, "perm").value_or(Ints()).size() == node->inputs[0]->type.dims.size();
  }

  // For each element of a row of the transpose's input, the row of the weights that it is multiplied by.
  // nullopt if the transpose moves elements from one row to another, or may, as far as dimensions tell.
  static std::optional<Ints> OrderOf(const Node& transpose, std::int64_t depth) {
    const Shape& dims = transpose.inputs[0]->type.dims;
    const Ints perm = *IntsAttribute(transpose, "perm");
    Ints behind;  // the axes of the output, without those of size 1
    for (const std::int64_t axis : perm) {
      if (!dims[static_cast<std::size_t>(axis)].Is(1)) behind.push_back(axis);
    }
    Ints before = behind;
    std::sort(before.begin(), before.end());
    const std::size_t stay = static_cast<std::size_t>(
        std::mismatch(before.begin(), before.end(), behind.begin()).first - before.begin());
    // Axes that stay in front choose a block of elements, within which the others are permuted.
    std::int64_t block = 1;
    for (std::size_t i = stay; i < before.size(); ++i) {
      const std::optional<std::int64_t> dim = dims[static_cast<std::size_t>(before[i])].constant();
      if (!dim || *dim < 1 || *dim > depth / block) return std::nullopt;
      block *= *dim;
    }
    if (depth % block != 0) return std::nullopt;
    // How far apart elements of the output lie that are neighbors on an axis of the input.
    Ints steps(dims.size(), 0);
    std::int64_t step = 1;
    for (std::size_t i = behind.size(); i-- > stay;) {
      const auto axis = static_cast<std::size_t>(behind[i]);
      steps[axis] = step;
      step *= *dims[axis].constant();
    }
    Ints order(static_cast<std::size_t>(depth));
    for (std::int64_t i = 0; i < depth; ++i) {
      std::int64_t rest = i % block, to = i - rest;
      for (std::size_t n = before.size(); n-- > stay;) {
        const auto axis = static_cast<std::size_t>(before[n]);
        const std::int64_t dim = *dims[axis].constant();
        to += rest % dim * steps[axis];
        rest /= dim;
      }
      order[static_cast<std::size_t>(i)] = to;
    }
    return order;
  }

  // Puts the rows of constant weights in this order before all runs.
  void PermuteRows(Node* reader, std::size_t at, const Ints& order) {
    Value*& weights = reader->inputs[at];
    HostTensor indices;
    indices.dtype = kInt64;
    indices.shape = {static_cast<std::int64_t>(order.size())};
    indices.bytes =
        CopyBytes({reinterpret_cast<const std::byte*>(order.data()), order.size() * sizeof(std::int64_t)});
    Value* rows = graph_.NewValue(weights->name + ".rows", TensorOf(kInt64, ShapeOfInts(indices.shape)));
    rows->constant = std::move(indices);
    Node* gather = OnWeights(&graph_, names::kGather, weights, {{"axis", std::int64_t{0}}});
    gather->inputs.push_back(rows);
    weights = AddOutput(&graph_, gather, weights->name + ".permuted", weights->type);
    permuted_.insert(weights);
    // A node that packs the weights runs behind it.
    std::vector<Node*>& init = graph_.init.nodes;
    std::rotate(std::find(init.begin(), init.end() - 1, reader), init.end() - 1, init.end());
  }

  Graph& graph_;
  const Edit edit_;
  std::unordered_set<const Value*> permuted_;
};

}  // namespace

void PermuteWeights(Graph* graph) { WeightPermuting(graph).Run(); }

}  // namespace rewire::compiler
