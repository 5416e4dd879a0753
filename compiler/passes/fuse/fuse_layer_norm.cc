// SPDX-License-Identifier: Apache-2.0
// Layer normalization over the last axis as exporters before opset 17 spelled it out:
//   d = x - mean(x);  d / sqrt(mean(d ^ 2) + epsilon) * scale + bias
#include <cstdint>
#include <optional>
#include <vector>

#include "rewire/base/array.h"
#include "rewire/compiler/passes/edit.h"
#include "rewire/compiler/passes/match/sources.h"
#include "rewire/compiler/passes/passes.h"
#include "rewire/kernels/contract/elementwise.h"
#include "rewire/kernels/contract/normalization.h"
#include "rewire/kernels/contract/reduction.h"

namespace rewire::compiler {
namespace {

using Ints = std::vector<std::int64_t>;

// x, when the value is its mean over the last axis, which stays with size 1.
Value* MeanOf(const Value* value) {
  const Node* mean = ProducerOf(value, names::kReduceMean);
  if (mean == nullptr || mean->inputs.size() != 1 || IntAttribute(*mean, "keepdims", 1) != 1) return nullptr;
  const std::optional<Ints> axes = IntsAttribute(*mean, "axes");
  const std::int64_t last = mean->inputs[0]->type.rank() - 1;
  if (!axes || axes->size() != 1 || ((*axes)[0] != -1 && (*axes)[0] != last)) return nullptr;
  return mean->inputs[0];
}

// d, when the value is its square.
const Value* SquareOf(const Value* value) {
  if (const Node* power = ProducerOf(value, names::kPow)) {
    return ScalarOf(power->inputs[1]) == 2.0F ? power->inputs[0] : nullptr;
  }
  const Node* product = ProducerOf(value, names::kMul);
  return product != nullptr && product->inputs[0] == product->inputs[1] ? product->inputs[0] : nullptr;
}

struct NormMatch {
  Value* x = nullptr;
  Value* scale = nullptr;
  Value* bias = nullptr;
  double epsilon = 0;
};

// The input that is a vector of `count` constant floats; the other one goes to `rest`.
Value* VectorInput(const Node& node, std::int64_t count, Value** rest) {
  for (std::size_t i : {0, 1}) {
    Value* value = node.inputs[i];
    if (!IsFloats(value) || value->constant->shape != Ints{count}) continue;
    *rest = node.inputs[1 - i];
    return value;
  }
  return nullptr;
}

std::optional<NormMatch> MatchNorm(const Node& add, const Edit& edit) {
  const Shape& dims = add.outputs[0]->type.dims;
  const std::optional<std::int64_t> count = dims.empty() ? std::nullopt : dims.back().constant();
  if (!count) return std::nullopt;
  NormMatch match;
  Value *product = nullptr, *quotient = nullptr;
  match.bias = VectorInput(add, *count, &product);
  const Node* mul = match.bias == nullptr ? nullptr : ProducerOf(product, names::kMul);
  if (mul == nullptr || edit.UseCount(product) != 1) return std::nullopt;
  match.scale = VectorInput(*mul, *count, &quotient);
  const Node* div = match.scale == nullptr ? nullptr : ProducerOf(quotient, names::kDiv);
  if (div == nullptr || edit.UseCount(quotient) != 1) return std::nullopt;
  const Node* root = ProducerOf(div->inputs[1], names::kSqrt);
  const Node* sum = root == nullptr ? nullptr : ProducerOf(root->inputs[0], names::kAdd);
  if (sum == nullptr) return std::nullopt;
  for (std::size_t i : {0, 1}) {
    const std::optional<float> epsilon = ScalarOf(sum->inputs[1 - i]);
    const Value* squares = epsilon ? MeanOf(sum->inputs[i]) : nullptr;
    const Value* distance = squares == nullptr ? nullptr : SquareOf(squares);
    const Node* sub = distance == nullptr ? nullptr : ProducerOf(distance, names::kSub);
    if (sub == nullptr || distance != div->inputs[0] || MeanOf(sub->inputs[1]) != sub->inputs[0]) continue;
    match.x = sub->inputs[0];
    match.epsilon = *epsilon;
    return match;
  }
  return std::nullopt;
}

}  // namespace

void FuseLayerNorm(Graph* graph) {
  const Edit edit(graph);
  ForEachBlock(&graph->main, [&](Block* block) {
    for (Node* node : block->nodes) {
      if (node->kind != NodeKind::kKernel || node->kernel != names::kAdd || node->inputs.size() != 2)
        continue;
      const std::optional<NormMatch> match = MatchNorm(*node, edit);
      if (!match || !(match->x->type.dtype == kFloat32) ||
          ShapeText(match->x->type.dims) != ShapeText(node->outputs[0]->type.dims)) {
        continue;
      }
      node->kernel = names::kLayerNorm;
      node->attributes = {{"axis", std::int64_t{-1}}, {"epsilon", match->epsilon}};
      AddSourcesBehind(node, {match->x});
      node->inputs = {match->x, match->scale, match->bias};
    }
  });
  RemoveDeadCode(graph);
}

}  // namespace rewire::compiler
