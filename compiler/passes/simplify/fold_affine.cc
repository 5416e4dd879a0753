// SPDX-License-Identifier: Apache-2.0
//
// Folds factors s and terms t per channel into convolutions, transposed or not: conv(x, w, b) * s + t equals
// conv(x, s w, s b + t). Exporters write them as batch normalization, or as Mul, Div, Add and Sub with
// constants.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rewire/compiler/passes/edit.h"
#include "rewire/compiler/passes/passes.h"
#include "rewire/compiler/passes/simplify/batch_norm.h"
#include "rewire/kernels/contract/convolution.h"
#include "rewire/kernels/contract/elementwise.h"
#include "rewire/kernels/contract/normalization.h"

namespace rewire::compiler {
namespace {

// -x, or 1 / x, of each element of a constant vector.
template <typename OfElement>
Value* Each(Value* x, const char* kernel, std::vector<Value*> inputs, const OfElement& of_element,
            Graph* graph) {
  const std::vector<std::int64_t>& dims = x->constant->shape;
  if (x->at_load) return FoldedAtLoad(graph, kernel, std::move(inputs), dims);
  std::vector<float> elements(FloatsOf(x), FloatsOf(x) + dims[0]);
  for (float& element : elements) element = of_element(element);
  return NewFloats(graph, x->name, dims, elements);
}

// The factor and term of a node for each channel of its input `x`; nothing when it does something else.
std::optional<AffineConstants> AffineOf(const Node& node, const Value* x, std::int64_t channels,
                                        Graph* graph) {
  if (node.kernel == names::kBatchNorm)
    return node.inputs[0] == x ? AffineOfBatchNorm(node, channels, graph) : std::nullopt;
  if (node.inputs.size() != 2) return std::nullopt;
  const bool first = node.inputs[0] == x;
  const bool behind = first && (node.kernel == names::kSub || node.kernel == names::kDiv);
  if (!behind && node.kernel != names::kAdd && node.kernel != names::kMul) return std::nullopt;
  Value* other = ChannelVector(graph, node.inputs[first ? 1 : 0], x->type.rank(), 1, channels);
  if (other == nullptr) return std::nullopt;
  if (node.kernel == names::kAdd) return AffineConstants{nullptr, other};
  if (node.kernel == names::kMul) return AffineConstants{other, nullptr};
  if (node.kernel == names::kSub)
    return AffineConstants{nullptr,
                           Each(
                               other, names::kNeg, {other}, [](float element) { return -element; }, graph)};
  Value* one = NewFloats(graph, other->name + ".one", {1}, {1.0F});
  return AffineConstants{
      Each(
          other, names::kDiv, {one, other}, [](float element) { return 1.0F / element; }, graph),
      nullptr};
}

// Its weights are [inputs, outputs, ...].
bool IsTransposed(const Node& conv) { return conv.kernel == names::kConvTranspose; }

std::int64_t ChannelsOf(const Node& conv) {
  return conv.inputs[1]->constant->shape[IsTransposed(conv) ? 1 : 0];
}

// Computes the new weights and bias now: all constants are known.
void Apply(const AffineConstants& affine, Node* conv, Graph* graph) {
  const Value* weights = conv->inputs[1];
  const std::vector<std::int64_t>& dims = weights->constant->shape;
  const auto channels = static_cast<std::size_t>(ChannelsOf(*conv));
  const std::size_t size = weights->constant->bytes.view.size() / sizeof(float);
  // Elements from one output channel's weights to the next one's.
  const std::size_t step = size / static_cast<std::size_t>(dims[0]) / (IsTransposed(*conv) ? channels : 1);
  const std::vector<float> ones(channels, 1.0F);
  const float* factors = affine.factor != nullptr ? FloatsOf(affine.factor) : ones.data();
  if (affine.factor != nullptr) {
    std::vector<float> folded(FloatsOf(weights), FloatsOf(weights) + size);
    for (std::size_t i = 0; i < size; ++i) folded[i] *= factors[i / step % channels];
    conv->inputs[1] = NewFloatsFrom(graph, weights, dims, folded);
  }
  std::vector<float> bias(channels);
  if (affine.term != nullptr) std::copy_n(FloatsOf(affine.term), channels, bias.begin());
  const float* before = conv->inputs.size() > 2 ? FloatsOf(conv->inputs[2]) : nullptr;
  for (std::size_t c = 0; before != nullptr && c < channels; ++c) bias[c] += before[c] * factors[c];
  const std::string bias_name = before != nullptr ? conv->inputs[2]->name : weights->name + ".bias";
  conv->inputs.resize(3);
  conv->inputs[2] = NewFloats(graph, bias_name, {static_cast<std::int64_t>(channels)}, bias);
}

// The same when a program is linked.
void ApplyAtLoad(const AffineConstants& affine, Node* conv, Graph* graph) {
  Value* weights = conv->inputs[1];
  const std::vector<std::int64_t> dims = weights->constant->shape, of_bias = {ChannelsOf(*conv)};
  conv->inputs.resize(3);
  Value* bias = conv->inputs[2];
  if (affine.factor != nullptr) {
    std::vector<std::int64_t> of_factor(dims.size(), 1);
    of_factor[IsTransposed(*conv) ? 1 : 0] = of_bias[0];
    Value* factor = graph->NewView(affine.factor->name, affine.factor, of_factor);
    conv->inputs[1] = FoldedAtLoad(graph, names::kMul, {weights, factor}, dims);
    if (bias != nullptr) bias = FoldedAtLoad(graph, names::kMul, {bias, affine.factor}, of_bias);
  }
  if (affine.term != nullptr)
    bias = bias == nullptr ? affine.term : FoldedAtLoad(graph, names::kAdd, {bias, affine.term}, of_bias);
  if (bias == nullptr)
    bias = NewFloats(graph, weights->name + ".bias", of_bias,
                     std::vector<float>(static_cast<std::size_t>(of_bias[0])));
  conv->inputs[2] = bias;
}

// Whether no element is infinite or NaN. Of x / 0 there is an infinity, which terms of a sum would meet
// apart.
bool IsFinite(const Value* value) {
  if (value == nullptr || value->at_load) return true;
  const float* first = FloatsOf(value);
  const auto count = static_cast<std::ptrdiff_t>(value->constant->bytes.view.size() / sizeof(float));
  return std::all_of(first, first + count, [](float element) { return std::isfinite(element); });
}

bool IsFoldable(const Node& node) {
  if ((node.kernel != names::kConv && !IsTransposed(node)) || node.outputs.size() != 1) return false;
  if (node.extents.size() != 1 || node.extents[0].shape != nullptr) return false;
  if (IsTransposed(node) && IntAttribute(node, "group", 1) != 1) return false;
  if (!IsFloats(node.inputs[1]) || node.inputs[1]->constant->bytes.view.empty()) return false;
  return node.inputs.size() < 3 || node.inputs[2] == nullptr || IsFloats(node.inputs[2]);
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
        const std::optional<AffineConstants> affine = AffineOf(*user, x, ChannelsOf(*node), graph);
        if (!affine || !IsFinite(affine->factor) || !IsFinite(affine->term)) break;
        const auto at_load = [](const Value* value) { return value != nullptr && value->at_load; };
        const bool known = !at_load(node->inputs[1]) && !at_load(OptionalInput(*node, 2)) &&
                           !at_load(affine->factor) && !at_load(affine->term);
        known ? Apply(*affine, node, graph) : ApplyAtLoad(*affine, node, graph);
        edit.TakeOver(node, user);
      }
    }
  });
  edit.Finish();
}

}  // namespace rewire::compiler
