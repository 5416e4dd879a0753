// SPDX-License-Identifier: Apache-2.0
//
// Fuses a PRelu of a dequantized tensor that is quantized again into one kernel from integers to integers, if
// it has a slope for each position along the last axis. The numbers are the same, without tensors of floats
// in between. The pass comes behind channels-last, which puts the channels there. A PRelu with one slope is a
// function of a byte, which map-bytes looks up.
#include <optional>

#include "rewire/compiler/passes/match/follow_up.h"
#include "rewire/compiler/passes/match/quantization.h"
#include "rewire/compiler/passes/passes.h"
#include "rewire/executable_format/names/source_note.h"
#include "rewire/kernels/contract/elementwise.h"
#include "rewire/kernels/contract/quantization.h"

namespace rewire::compiler {
namespace {

// The node that quantizes, which has become the fused one; null if they are not fused.
Node* Fuse(const Node& prelu, const Edit& edit) {
  if (prelu.kind != NodeKind::kKernel || prelu.kernel != names::kPRelu || prelu.inputs.size() != 2)
    return nullptr;
  const Value* slope = prelu.inputs[1];
  if (!IsFloats(slope) || slope->type.rank() != 1 || slope->constant->shape[0] < 2) return nullptr;
  const Node* dequantize = prelu.inputs[0]->producer;
  if (dequantize == nullptr || dequantize->kernel != names::kDequantizeLinear ||
      !SameShape(*dequantize, prelu))
    return nullptr;
  Node* quantize = edit.OnlyUser(prelu.outputs[0]);
  if (quantize == nullptr || quantize->kernel != names::kQuantizeLinear || !SameShape(prelu, *quantize))
    return nullptr;
  Value* stored = dequantize->inputs[0];
  const std::optional<Quantization> from = QuantizationOf(*dequantize), by = QuantizationOf(*quantize);
  if (!from || !by || !(stored->type.dtype == quantize->outputs[0]->type.dtype)) return nullptr;
  quantize->kernel = names::kPReluQuantized;
  quantize->attributes = {{"x_scale", double{from->scale}},
                          {"x_zero", from->zero},
                          {"scale", double{by->scale}},
                          {"zero", by->zero}};
  quantize->inputs = {stored, prelu.inputs[1]};
  quantize->source = JoinNotes(prelu.source, quantize->source);
  return quantize;
}

}  // namespace

void FuseQuantizedPRelu(Graph* graph) {
  Edit edit(graph);
  bool changed = false;
  ForEachBlock(&graph->main, [&](Block* block) {
    for (Node* node : block->nodes) {
      Node* fused = Fuse(*node, edit);
      if (fused == nullptr) continue;
      edit.Absorb(node, fused);
      changed = true;
    }
  });
  edit.Finish();
  if (changed) RemoveDeadCode(graph);
}

}  // namespace rewire::compiler
