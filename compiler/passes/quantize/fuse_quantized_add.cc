// SPDX-License-Identifier: Apache-2.0
//
// Fuses the sum of two dequantized tensors that is quantized again, perhaps behind an activation, into one
// kernel from integers to integers. The numbers are the same, without tensors of floats in between.
#include <optional>

#include "rewire/compiler/passes/match/follow_up.h"
#include "rewire/compiler/passes/match/quantization.h"
#include "rewire/compiler/passes/passes.h"
#include "rewire/executable_format/names/source_note.h"
#include "rewire/kernels/contract/elementwise.h"
#include "rewire/kernels/contract/quantization.h"

namespace rewire::compiler {
namespace {

class Fusing {
 public:
  explicit Fusing(Graph* graph) : graph_(*graph), edit_(graph) {}

  void Run() {
    bool changed = false;
    ForEachBlock(&graph_.main, [&](Block* block) {
      for (Node* node : block->nodes) changed = Fuse(node) || changed;
    });
    edit_.Finish();
    if (changed) RemoveDeadCode(&graph_);  // what nothing but the sums has read
  }

 private:
  // The only reader of `node`'s output, if its result has the same shape.
  Node* Next(const Node& node) const {
    Node* user = edit_.OnlyUser(node.outputs[0]);
    return user != nullptr && user->kind == NodeKind::kKernel && SameShape(node, *user) ? user : nullptr;
  }

  bool Fuse(Node* add) {
    if (add->kind != NodeKind::kKernel || add->kernel != names::kAdd || add->inputs.size() != 2) return false;
    Node* activation = Next(*add);
    if (activation == nullptr) return false;
    const bool bounds = activation->kernel == names::kRelu || activation->kernel == names::kClip;
    Node* quantize = bounds ? Next(*activation) : activation;
    if (quantize == nullptr || quantize->kernel != names::kQuantizeLinear) return false;
    const std::optional<Quantization> by = QuantizationOf(*quantize);
    if (!by) return false;
    const DLDataType dtype = quantize->outputs[0]->type.dtype;
    std::optional<StoredRange> range = StoredRange();
    if (bounds) range = StoredRangeOf(*activation, *by, dtype);
    if (!range) return false;
    std::optional<Quantization> terms[2];
    Value* stored[2];
    for (std::size_t i = 0; i < 2; ++i) {
      const Node* from = add->inputs[i]->producer;
      if (from == nullptr || from->kernel != names::kDequantizeLinear || !SameShape(*from, *add))
        return false;
      terms[i] = QuantizationOf(*from);
      stored[i] = from->inputs[0];
      if (!terms[i] || !(stored[i]->type.dtype == dtype)) return false;
    }
    quantize->kernel = names::kAddQuantized;
    quantize->attributes = {{"a_scale", double{terms[0]->scale}}, {"a_zero", terms[0]->zero},
                            {"b_scale", double{terms[1]->scale}}, {"b_zero", terms[1]->zero},
                            {"scale", double{by->scale}},         {"zero", by->zero}};
    if (range->least) quantize->attributes.push_back({"least", *range->least});
    if (range->most) quantize->attributes.push_back({"most", *range->most});
    quantize->inputs = {stored[0], stored[1]};
    quantize->source = JoinNotes(JoinNotes(add->source, activation->source), quantize->source);
    for (Node* passed : {add, activation}) {
      if (passed != quantize) edit_.Absorb(passed, quantize);
    }
    return true;
  }

  Graph& graph_;
  Edit edit_;
};

}  // namespace

void FuseQuantizedAdd(Graph* graph) { Fusing(graph).Run(); }

}  // namespace rewire::compiler
