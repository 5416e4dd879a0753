// SPDX-License-Identifier: Apache-2.0
//
// Folds factors s and terms t per channel into convolutions, transposed or not: conv(x, w, b) * s + t equals
// conv(x, s w, s b + t). Exporters write them as batch normalization, or as Mul, Div, Add and Sub with
// constants.
#include <cstdint>
#include <optional>
#include <vector>

#include "rewire/compiler/passes/edit.h"
#include "rewire/compiler/passes/passes.h"
#include "rewire/compiler/passes/simplify/batch_norm.h"
#include "rewire/kernels/contract/convolution.h"
#include "rewire/kernels/contract/elementwise.h"
#include "rewire/kernels/contract/normalization.h"

namespace rewire::compiler {
namespace {

// The factor and term of a node for each channel of its input `x`; nothing when it does something else.
std::optional<Affine> AffineOf(const Node& node, const Value* x, std::int64_t channels) {
  if (node.kernel == names::kBatchNorm)
    return node.inputs[0] == x ? AffineOfBatchNorm(node, channels) : std::nullopt;
  const auto count = static_cast<std::size_t>(channels);
  Affine affine{std::vector<float>(count, 1.0F), std::vector<float>(count, 0.0F)};
  if (node.inputs.size() != 2) return std::nullopt;
  const bool first = node.inputs[0] == x;
  const std::optional<std::vector<float>> other =
      PerChannel(node.inputs[first ? 1 : 0], x->type.rank(), 1, channels);
  if (!other) return std::nullopt;
  if (node.kernel == names::kAdd) {
    affine.term = *other;
  } else if (node.kernel == names::kMul) {
    affine.factor = *other;
  } else if (node.kernel == names::kSub && first) {
    for (std::size_t c = 0; c < count; ++c) affine.term[c] = -(*other)[c];
  } else if (node.kernel == names::kDiv && first) {
    for (std::size_t c = 0; c < count; ++c) affine.factor[c] = 1.0F / (*other)[c];
  } else {
    return std::nullopt;
  }
  return affine;
}

// Its weights are [inputs, outputs, ...].
bool IsTransposed(const Node& conv) { return conv.kernel == names::kConvTranspose; }

void Apply(const Affine& affine, Node* conv, Graph* graph) {
  const Value* weights = conv->inputs[1];
  const std::vector<std::int64_t>& dims = weights->constant->shape;
  const std::size_t channels = affine.factor.size();
  const std::size_t size = weights->constant->bytes.view.size() / sizeof(float);
  // Elements from one output channel's weights to the next one's.
  const std::size_t step = size / static_cast<std::size_t>(dims[0]) / (IsTransposed(*conv) ? channels : 1);
  std::vector<float> folded(FloatsOf(weights), FloatsOf(weights) + size);
  for (std::size_t i = 0; i < size; ++i) folded[i] *= affine.factor[i / step % channels];
  std::vector<float> bias = affine.term;
  const float* before = conv->inputs.size() > 2 ? FloatsOf(conv->inputs[2]) : nullptr;
  for (std::size_t c = 0; before != nullptr && c < channels; ++c) bias[c] += before[c] * affine.factor[c];
  conv->inputs[1] = NewFloats(graph, weights->name, dims, folded);
  const std::string bias_name = before != nullptr ? conv->inputs[2]->name : weights->name + ".bias";
  conv->inputs.resize(3);
  conv->inputs[2] = NewFloats(graph, bias_name, {static_cast<std::int64_t>(channels)}, bias);
}

bool IsFoldable(const Node& node) {
  if ((node.kernel != names::kConv && !IsTransposed(node)) || node.outputs.size() != 1) return false;
  if (node.extents.size() != 1 || node.extents[0].shape != nullptr) return false;
  if (IsTransposed(node) && IntAttribute(node, "group", 1) != 1) return false;
  if (FloatsOf(node.inputs[1]) == nullptr || node.inputs[1]->constant->bytes.view.empty()) return false;
  return node.inputs.size() < 3 || node.inputs[2] == nullptr || FloatsOf(node.inputs[2]) != nullptr;
}

}  // namespace

void FoldAffine(Graph* graph) {
  Edit edit(graph);
  ForEachBlock(&graph->main, [&](Block* block) {
    for (Node* node : block->nodes) {
      if (edit.IsErased(node) || !IsFoldable(*node)) continue;
      while (Node* user = edit.OnlyUser(node->outputs[0])) {
        const Value* x = node->outputs[0];
        if (user->outputs.size() != 1 || ShapeText(user->extents.empty() ? Shape() : user->extents[0].dims) !=
                                             ShapeText(node->extents[0].dims)) {
          break;
        }
        const auto affine = AffineOf(*user, x, node->inputs[1]->constant->shape[IsTransposed(*node) ? 1 : 0]);
        if (!affine) break;
        Apply(*affine, node, graph);
        edit.TakeOver(node, user);
      }
    }
  });
  edit.Finish();
}

}  // namespace rewire::compiler
