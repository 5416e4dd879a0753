// SPDX-License-Identifier: Apache-2.0
//
// A slice that cuts off ends of a convolution, at most what its pads have added: causal convolutions are
// exported so. The convolution then has smaller pads, and what follows the slice can become part of it.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "rewire/compiler/passes/edit.h"
#include "rewire/compiler/passes/layout/image_axes.h"
#include "rewire/compiler/passes/passes.h"
#include "rewire/kernels/contract/convolution.h"
#include "rewire/kernels/contract/movement.h"

namespace rewire::compiler {
namespace {

// Whether the sizes are known without a shape function, and without symbols that only this node explains.
bool HasPlainSize(const Node& node) {
  return node.extents.size() == 1 && node.extents[0].shape == nullptr && node.outputs[0]->type.ranked &&
         ShapeText(node.extents[0].dims) == ShapeText(node.outputs[0]->type.dims);
}

// The pads of the convolution without what the slice cuts off, if that is all that it does.
std::optional<Ints> CutPads(const Node& conv, const Node& slice) {
  const auto starts = IntsAttribute(slice, "starts"), ends = IntsAttribute(slice, "ends"),
             axes = IntsAttribute(slice, "axes");
  const auto steps = IntsAttribute(slice, "steps"), dilations = IntsAttribute(conv, "dilations");
  std::optional<Ints> pads = IntsAttribute(conv, "pads");
  if (!starts || !ends || !axes || !pads || !conv.inputs[1]->IsConstant()) return std::nullopt;
  const Ints& weights = conv.inputs[1]->constant->shape;
  const std::size_t spatial = pads->size() / 2;
  if (weights.size() != spatial + 2 || (dilations && dilations->size() != spatial)) return std::nullopt;
  const std::int64_t rank = conv.outputs[0]->type.rank();
  for (std::size_t i = 0; i < axes->size(); ++i) {
    const std::int64_t axis = (*axes)[i] < 0 ? (*axes)[i] + rank : (*axes)[i];
    const std::int64_t first = (*starts)[i], end = (*ends)[i];
    if (axis < 2 || axis >= rank || first < 0 || (steps && (*steps)[i] != 1)) return std::nullopt;
    // Up to a number from the end, or to the end.
    if (end >= 0 && end < std::numeric_limits<std::int32_t>::max()) return std::nullopt;
    const auto at = static_cast<std::size_t>(axis - 2);
    std::int64_t &before = (*pads)[at], &behind = (*pads)[at + spatial];
    if (first > before || (end < 0 && end < -behind)) return std::nullopt;
    before -= first;
    if (end < 0) behind += end;
    // Images of any size still make a result: a slice of too little is empty, a convolution of it an error.
    if (before + behind < (weights[at + 2] - 1) * (dilations ? (*dilations)[at] : 1)) return std::nullopt;
  }
  return pads;
}

}  // namespace

void CutPads(Graph* graph) {
  const Edit edit(graph);
  ForEachBlock(&graph->main, [&](Block* block) {
    for (Node* node : block->nodes) {
      if (node->kind != NodeKind::kKernel || node->kernel != names::kSlice || node->inputs.size() != 1)
        continue;
      const Node* conv = node->inputs[0]->producer;
      if (conv == nullptr || conv->kind != NodeKind::kKernel || conv->kernel != names::kConv ||
          edit.UseCount(node->inputs[0]) != 1 || !HasPlainSize(*conv) || !HasPlainSize(*node)) {
        continue;
      }
      const Attribute* auto_pad = FindAttribute(*conv, "auto_pad");
      const std::optional<Ints> strides = IntsAttribute(*conv, "strides");
      const bool is_plain = (auto_pad == nullptr || std::get<std::string>(auto_pad->value) == "NOTSET") &&
                            (!strides || std::all_of(strides->begin(), strides->end(),
                                                     [](std::int64_t stride) { return stride == 1; }));
      const std::optional<Ints> pads = is_plain ? CutPads(*conv, *node) : std::nullopt;
      if (!pads) continue;
      node->kernel = conv->kernel;
      node->attributes = conv->attributes;
      node->inputs = conv->inputs;
      node->source = conv->source;
      SetAttribute(node, "pads", *pads);
    }
  });
  RemoveDeadCode(graph);
}

}  // namespace rewire::compiler
