// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/lower/registry.h"
#include "rewire/kernels/contract/normalization.h"
#include "rewire/kernels/contract/training.h"

namespace rewire::compiler {
namespace {

Value* NegativeLogLikelihood(Op& op, const char* kernel, Value* log_probabilities) {
  const std::string reduction = op.String("reduction", "mean");
  Attributes attributes = {{"reduction", reduction}};
  if (op.HasAttribute("ignore_index")) attributes.push_back({"ignore_index", op.Int("ignore_index", 0)});
  Value* target = op.in(1);
  std::vector<Value*> inputs = {log_probabilities, target};
  if (op.in(2) != nullptr) inputs.push_back(op.in(2));
  return op.Call(kernel, std::move(inputs), std::move(attributes),
                 TensorOf(log_probabilities->type.dtype, reduction == "none" ? target->type.dims : Shape()));
}

Status LowerNegativeLogLikelihoodLoss(Op& op, const Operator& row) {
  op.Set(0, NegativeLogLikelihood(op, row.kernel, op.in(0)));
  return {};
}

Status LowerSoftmaxCrossEntropyLoss(Op& op, const Operator& row) {
  Value* x = op.in(0);
  if (x->type.rank() < 2) return op.Invalid("scores {} have no classes", ShapeText(x->type.dims));
  Value* log_probabilities = op.Call(names::kLogSoftmax, {x}, {{"axis", std::int64_t{1}}}, x->type);
  op.Set(0, NegativeLogLikelihood(op, row.kernel, log_probabilities));
  op.Set(1, log_probabilities);
  return {};
}

}  // namespace

std::span<const Operator> LossOperators() {
  static constexpr Operator kOperators[] = {
      {"NegativeLogLikelihoodLoss", 12, 0, 2, 3, "ignore_index reduction", LowerNegativeLogLikelihoodLoss,
       names::kNllLoss},
      {"SoftmaxCrossEntropyLoss", 12, 0, 2, 3, "ignore_index reduction", LowerSoftmaxCrossEntropyLoss,
       names::kNllLoss},
  };
  return kOperators;
}

}  // namespace rewire::compiler
