// SPDX-License-Identifier: Apache-2.0
//
// Lets a product by packed weights add the other term of the sum behind it, a residual, and apply the
// activation behind that. The sum is then one pass less over memory.
#include <string>

#include "rewire/compiler/passes/match/follow_up.h"
#include "rewire/compiler/passes/passes.h"
#include "rewire/executable_format/names/source_note.h"
#include "rewire/kernels/contract/convolution.h"
#include "rewire/kernels/contract/elementwise.h"
#include "rewire/kernels/contract/product.h"

namespace rewire::compiler {
namespace {

class Residuals {
 public:
  explicit Residuals(Graph* graph) : graph_(*graph), edit_(graph) {}

  void Run() {
    ForEachBlock(&graph_.main, [&](Block* block) {
      for (Node* node : block->nodes) {
        if (!edit_.IsErased(node)) Fuse(node);
      }
    });
    edit_.Finish();
  }

 private:
  // The product takes the place of the sum, where both terms are known.
  void Fuse(Node* add) {
    if (add->kind != NodeKind::kKernel || add->kernel != names::kAdd || add->inputs.size() != 2) return;
    // The later of two products adds, since the other is then needed no longer than before.
    for (const std::size_t i : {1, 0}) {
      Node* product = add->inputs[i]->producer;
      Value* residual = add->inputs[1 - i];
      if (product == nullptr || !CanAdd(*product, *add, *residual)) continue;
      AddMissing(product, *add);
      add->kernel = product->kernel;
      add->attributes = product->attributes;
      add->inputs = product->inputs;
      add->inputs.push_back(residual);
      add->source = JoinNotes(product->source, add->source);
      edit_.Absorb(product, add);
      if (IsBlocked(*add)) return;
      TakeActivation(&edit_, add);
      TakeMoves(&edit_, add);
      return;
    }
  }

  static bool IsBlocked(const Node& product) { return product.kernel == names::kBlockedMatMul; }

  // How many inputs stand before the addend.
  static std::size_t InputsBefore(const Node& product) {
    return IsBlocked(product) ? 5 : product.kernel == names::kPackedMatMulBytes ? 4 : 3;
  }

  // The inputs before the addend that the product lacks.
  void AddMissing(Node* product, const Node& add) {
    if (product->inputs.size() == InputsBefore(*product)) return;
    if (!IsBlocked(*product)) {
      product->inputs.push_back(ZeroBias(&graph_, add.outputs[0]->name, ColumnsOf(add)));
      return;
    }
    Value* none = NewFloats(&graph_, "none", {0}, {});
    while (product->inputs.size() < InputsBefore(*product)) product->inputs.push_back(none);
  }

  bool CanAdd(const Node& product, const Node& add, const Value& residual) const {
    if (product.kernel != names::kPackedConv && product.kernel != names::kPackedMatMul &&
        product.kernel != names::kPackedWinograd && product.kernel != names::kPackedMatMulBytes &&
        !IsBlocked(product))
      return false;
    const Type& type = add.outputs[0]->type;
    return edit_.OnlyUser(product.outputs[0]) == &add && product.inputs.size() <= InputsBefore(product) &&
           FindAttribute(product, "activation") == nullptr && SameShape(product, add) &&
           residual.type.dtype == type.dtype && residual.type.ranked &&
           ShapeText(residual.type.dims) == ShapeText(type.dims) && ColumnsOf(add) > 0;
  }

  // The last dimension of a product's output, which is always known; otherwise 0.
  static std::int64_t ColumnsOf(const Node& node) {
    const Shape& dims = node.outputs[0]->type.dims;
    if (dims.empty()) return 0;
    return dims.back().constant().value_or(0);
  }

  Graph& graph_;
  Edit edit_;
};

}  // namespace

void AddResiduals(Graph* graph) { Residuals(graph).Run(); }

}  // namespace rewire::compiler
