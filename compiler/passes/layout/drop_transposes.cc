// SPDX-License-Identifier: Apache-2.0
//
// Two transposes with a reshape between them, which together leave every element where it is, become a
// reshape. So tokens [N, length, C] become an image [N, height, width, C] with the channels last, and the
// other way round, without a copy.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "rewire/compiler/ir/dim_length.h"
#include "rewire/compiler/ir/kernel_traits.h"
#include "rewire/compiler/passes/edit.h"
#include "rewire/compiler/passes/layout/image_axes.h"
#include "rewire/compiler/passes/passes.h"
#include "rewire/kernels/contract/movement.h"

namespace rewire::compiler {
namespace {

// The parts that each axis consists of, by their numbers.
using Parts = std::vector<Ints>;

class TransposeDropping {
 public:
  explicit TransposeDropping(Graph* graph) : graph_(*graph), edit_(graph) {}

  // Images that are reshaped from transposed tokens become transposed images, of which the pass channels-last
  // knows what they were before.
  void MoveBehindReshapes() {
    ForEachBlock(&graph_.main, [&](Block* block) {
      std::vector<Node*> nodes;
      for (Node* node : block->nodes) {
        if (Node* reshape = ReshapeBefore(node)) nodes.push_back(reshape);
        nodes.push_back(node);
      }
      block->nodes = std::move(nodes);
    });
    RemoveDeadCode(&graph_);
  }

  void DropPairs() {
    ForEachBlock(&graph_.main, [&](Block* block) {
      for (Node* node : block->nodes) {
        if (!edit_.IsErased(node) && IsTranspose(node)) Drop(node);
      }
    });
    edit_.Finish();
    RemoveDeadCode(&graph_);
  }

 private:
  // Lets a reshape give the image with the channels last, and what was the reshape transpose that.
  Node* ReshapeBefore(Node* node) {
    if (node->kind != NodeKind::kReshape || node->inputs.size() != 1 || !IsSized(*node)) return nullptr;
    Value* image = node->outputs[0];
    const Node* first = node->inputs[0]->producer;
    if (image->type.rank() < 4 || image->type.rank() > 5 || !IsTranspose(first)) return nullptr;
    const Ints perm = ToLast(image);
    if (!Undoes(*first, image->type.dims, perm)) return nullptr;
    Node* reshape = graph_.NewNode(NodeKind::kReshape);
    Value* last = graph_.NewValue(image->name, image->type);
    last->type.dims = Permuted(image->type.dims, perm);
    last->producer = reshape;
    reshape->inputs = {first->inputs[0]};
    reshape->outputs = {last};
    reshape->extents = {{Permuted(node->extents[0].dims, perm), nullptr}};
    reshape->source = node->source;
    node->kind = NodeKind::kKernel;
    node->kernel = names::kTranspose;
    node->attributes = {{"perm", ToFirst(image)}};
    node->inputs = {last};
    return reshape;
  }

  // Between the reshape and this transpose there may be elementwise operators, each read by the next alone.
  void Drop(Node* last) {
    std::vector<Node*> chain;  // the last one first
    Node* node = last->inputs[0]->producer;
    while (node != nullptr && IsElementwise(graph_, *node, 1) && IsSized(*node)) {
      chain.push_back(node);
      node = node->inputs[0]->producer;
    }
    if (node == nullptr || node->kind != NodeKind::kReshape || node->inputs.size() != 1 || !IsSized(*node))
      return;
    const Node* first = node->inputs[0]->producer;
    const Ints perm = *IntsAttribute(*last, "perm");
    if (!IsTranspose(first) || !Undoes(*first, node->outputs[0]->type.dims, perm)) return;
    const Node* user = last;
    for (const Node* inner : chain) {
      if (edit_.OnlyUser(inner->outputs[0]) != user) return;
      user = inner;
    }
    if (edit_.OnlyUser(node->outputs[0]) != user) return;
    node->inputs = {first->inputs[0]};
    chain.push_back(node);
    Value* after = last->outputs[0];
    for (Node* moved : chain) {
      Value* before = moved->outputs[0];
      if (moved != chain.front()) {
        Type type = last->outputs[0]->type;
        type.dtype = before->type.dtype;
        after = graph_.NewValue(before->name, std::move(type));
      }
      graph_.MoveSymbols(before, after, perm);
      moved->outputs = {after};
      // By its own expressions: those of later nodes may have symbols that stand for this very node's sizes.
      moved->extents[0].dims = Permuted(moved->extents[0].dims, perm);
      after->producer = moved;
    }
    for (std::size_t i = 0; i + 1 < chain.size(); ++i) chain[i]->inputs[0] = chain[i + 1]->outputs[0];
    edit_.Erase(last);
  }

  static bool IsSized(const Node& node) {
    return node.extents.size() == 1 && node.extents[0].shape == nullptr;
  }

  // Whether a transpose by `behind` puts the elements of `between`, to which the output of the first one is
  // reshaped, back to where they were.
  bool Undoes(const Node& first, const Shape& between, const Ints& behind) const {
    Parts from, to;
    if (!Split(first.outputs[0]->type.dims, between, &from, &to)) return false;
    // An output's axis is the input's axis perm[i]: so the first transpose has to be undone.
    const Ints before = *IntsAttribute(first, "perm");
    Parts of_x(from.size());
    for (std::size_t i = 0; i < from.size(); ++i) of_x[static_cast<std::size_t>(before[i])] = from[i];
    Ints order, order_behind;
    for (const Ints& parts : of_x) order.insert(order.end(), parts.begin(), parts.end());
    for (const std::int64_t axis : behind) {
      const Ints& parts = to[static_cast<std::size_t>(axis)];
      order_behind.insert(order_behind.end(), parts.begin(), parts.end());
    }
    return order == order_behind;
  }

  static bool IsTranspose(const Node* node) {
    return node != nullptr && node->kind == NodeKind::kKernel && node->kernel == names::kTranspose &&
           node->inputs[0]->type.ranked && IsSized(*node) &&
           IntsAttribute(*node, "perm").value_or(Ints()).size() == node->inputs[0]->type.dims.size();
  }

  // Finds the parts that the axes of both sides of a reshape have: an axis of one is one or several of the
  // other. Axes of size 1 have none. False where the dimensions do not tell.
  bool Split(const Shape& a, const Shape& b, Parts* of_a, Parts* of_b) const {
    of_a->resize(a.size());
    of_b->resize(b.size());
    std::int64_t part = 0;
    std::size_t i = 0, j = 0;
    for (;;) {
      while (i < a.size() && a[i].Is(1)) ++i;
      while (j < b.size() && b[j].Is(1)) ++j;
      if (i == a.size() || j == b.size()) return i == a.size() && j == b.size();
      const std::optional<std::size_t> of_first = CountOf(b, j, a[i]), of_second = CountOf(a, i, b[j]);
      if (!of_first && !of_second) return false;
      const std::size_t ends_a = of_first ? i + 1 : i + *of_second, ends_b = of_first ? j + *of_first : j + 1;
      const std::size_t count = std::max(ends_a - i, ends_b - j);
      for (std::size_t n = 0; n < count; ++n, ++part) {
        (*of_a)[of_first ? i : i + n].push_back(part);
        (*of_b)[of_first ? j + n : j].push_back(part);
      }
      i = ends_a;
      j = ends_b;
    }
  }

  // How many of these dimensions, from one on, have this product.
  std::optional<std::size_t> CountOf(const Shape& dims, std::size_t from, const DimExpr& wanted) const {
    const DimExpr expected = graph_.WithoutOwnSymbols(wanted);
    DimExpr product = 1;
    for (std::size_t i = from; i < dims.size(); ++i) {
      product = product * graph_.WithoutOwnSymbols(dims[i]);
      if (product == expected && !IsTooLong(product)) return i + 1 - from;
    }
    return std::nullopt;
  }

  Graph& graph_;
  Edit edit_;
};

}  // namespace

void TransposeLate(Graph* graph) { TransposeDropping(graph).MoveBehindReshapes(); }

void DropTransposes(Graph* graph) { TransposeDropping(graph).DropPairs(); }

}  // namespace rewire::compiler
