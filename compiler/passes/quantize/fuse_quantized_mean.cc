// SPDX-License-Identifier: Apache-2.0
//
// Fuses the mean of a dequantized tensor that is quantized again into one kernel from integers to integers.
// It adds the integers, exactly, and makes no tensors of floats in between. The pass comes behind
// channels-last, which moves means by themselves to the order of the images around them. Means that
// integer-products has made products of are none any more.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "rewire/compiler/passes/match/follow_up.h"
#include "rewire/compiler/passes/match/quantization.h"
#include "rewire/compiler/passes/node_attributes.h"
#include "rewire/compiler/passes/passes.h"
#include "rewire/executable_format/names/source_note.h"
#include "rewire/kernels/contract/movement.h"
#include "rewire/kernels/contract/quantization.h"
#include "rewire/kernels/contract/reduction.h"
#include "rewire/kernels/contract/reduction_attributes.h"

namespace rewire::compiler {
namespace {

// The axes, sorted and counted from the first one. Empty for all.
std::vector<std::int64_t> Sorted(std::vector<std::int64_t> axes, int rank) {
  for (std::int64_t& axis : axes) axis += axis < 0 ? rank : 0;
  std::sort(axes.begin(), axes.end());
  return axes;
}

bool AreSuccessive(const std::vector<std::int64_t>& axes) {
  for (std::size_t i = 1; i < axes.size(); ++i) {
    if (axes[i] != axes[i - 1] + 1) return false;
  }
  return !axes.empty();
}

// Means of a transposed tensor are those of the tensor itself, if the axes that stay have the same order.
// Gives the axes of the other one then.
bool MovePastTranspose(Value** stored, std::vector<std::int64_t>* axes) {
  const Node* transpose = (*stored)->producer;
  if (transpose == nullptr || transpose->kind != NodeKind::kKernel || transpose->kernel != names::kTranspose)
    return false;
  const std::optional<std::vector<std::int64_t>> perm = IntsAttribute(*transpose, "perm");
  Value* source = transpose->inputs[0];
  if (!perm || !source->type.ranked || perm->size() != source->type.dims.size()) return false;
  std::vector<std::int64_t> moved;
  std::int64_t last = -1;
  for (std::size_t i = 0; i < perm->size(); ++i) {
    const std::int64_t axis = (*perm)[i];
    if (std::find(axes->begin(), axes->end(), static_cast<std::int64_t>(i)) != axes->end()) {
      moved.push_back(axis);
    } else if (!source->type.dims[static_cast<std::size_t>(axis)].Is(1)) {
      if (axis < last) return false;
      last = axis;
    }
  }
  moved = Sorted(moved, 0);
  if (!AreSuccessive(moved)) return false;
  *stored = source;
  *axes = moved;
  return true;
}

// The node that quantizes, which has become the fused one; null if they are not fused.
Node* FuseMean(const Node& mean, const Edit& edit) {
  if (mean.kind != NodeKind::kKernel || mean.kernel != names::kReduceMean || mean.inputs.size() != 1)
    return nullptr;
  const Node* dequantize = mean.inputs[0]->producer;
  if (dequantize == nullptr || dequantize->kernel != names::kDequantizeLinear) return nullptr;
  Value* stored = dequantize->inputs[0];
  if (!stored->type.ranked) return nullptr;
  std::vector<std::int64_t> axes =
      Sorted(AttributesOf<contract::ReduceAttributes>(mean).axes, stored->type.rank());
  Node* quantize = edit.OnlyUser(mean.outputs[0]);
  if (quantize == nullptr || quantize->kernel != names::kQuantizeLinear || !SameShape(mean, *quantize))
    return nullptr;
  const std::optional<Quantization> from = QuantizationOf(*dequantize), by = QuantizationOf(*quantize);
  if (!from || !by || !(stored->type.dtype == quantize->outputs[0]->type.dtype)) return nullptr;
  if (!MovePastTranspose(&stored, &axes) && !AreSuccessive(axes)) return nullptr;
  quantize->kernel = names::kMeanQuantized;
  quantize->attributes = {{"axes", axes},
                          {"x_scale", double{from->scale}},
                          {"x_zero", from->zero},
                          {"scale", double{by->scale}},
                          {"zero", by->zero}};
  quantize->inputs = {stored};
  quantize->source = JoinNotes(mean.source, quantize->source);
  return quantize;
}

}  // namespace

void FuseQuantizedMean(Graph* graph) {
  Edit edit(graph);
  bool changed = false;
  ForEachBlock(&graph->main, [&](Block* block) {
    for (Node* node : block->nodes) {
      Node* fused = FuseMean(*node, edit);
      if (fused == nullptr) continue;
      edit.Absorb(node, fused);
      changed = true;
    }
  });
  edit.Finish();
  if (changed) RemoveDeadCode(graph);
}

}  // namespace rewire::compiler
