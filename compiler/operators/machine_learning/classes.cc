// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/operators/machine_learning/classes.h"

#include "rewire/compiler/operators/texts.h"
#include "rewire/kernels/contract/elementwise.h"
#include "rewire/kernels/contract/indexing.h"
#include "rewire/kernels/contract/normalization.h"
#include "rewire/kernels/contract/reduction.h"

namespace rewire::compiler {
namespace {

// The inverse of the normal distribution, by the approximation of the inverse error function that ONNX's
// reference takes, too.
Value* Probit(Op& op, Value* scores) {
  constexpr double kPi = 3.14159, kA = 0.147, kRoot2 = 1.41421356;
  const DLDataType dtype = scores->type.dtype;
  const auto number = [&](double value) { return op.Scalar(dtype, value); };
  Value* x = op.Apply(names::kSub, op.Apply(names::kMul, scores, number(2)), number(1));
  Value* log = op.Unary(names::kLog, op.Apply(names::kMul, op.Apply(names::kSub, number(1), x),
                                              op.Apply(names::kAdd, number(1), x)));
  Value* half = op.Apply(names::kAdd, op.Apply(names::kMul, log, number(0.5)), number(2 / (kPi * kA)));
  Value* rest = op.Apply(names::kMul, log, number(1 / kA));
  Value* root = op.Unary(names::kSqrt, op.Apply(names::kSub, op.Apply(names::kMul, half, half), rest));
  Value* size = op.Unary(names::kSqrt, op.Apply(names::kSub, root, half));
  Value* sign = op.Apply(names::kMul, op.Unary(names::kSign, x), number(kRoot2));
  return op.Apply(names::kMul, sign, size);
}

// Softmax over the scores that are not 0; the others become nearly 0.
Value* SoftmaxZero(Op& op, Value* scores) {
  const DLDataType dtype = scores->type.dtype;
  Value* most = op.Reduce(names::kReduceMax, scores, {1}, true);
  Value* given = op.Compare(names::kGreater, op.Unary(names::kAbs, scores), op.Scalar(dtype, 1e-7));
  Value* power = op.Unary(names::kExp, op.Apply(names::kSub, scores, most));
  Value* summed = op.Call(names::kWhere, {given, power, op.Scalar(dtype, 0)}, {}, scores->type);
  Value* small = op.Apply(names::kMul, scores, op.Unary(names::kExp, op.Unary(names::kNeg, most)));
  Value* all = op.Call(names::kWhere, {given, power, small}, {}, scores->type);
  return op.Apply(names::kDiv, all, op.Reduce(names::kReduceSum, summed, {1}, true));
}

}  // namespace

ClassLabels LabelsOf(const Op& op, const char* numbers) {
  return {op.IntList(numbers), TextsOf(op, "classlabels_strings")};
}

void SetLabels(Op& op, int i, Value* classes, const ClassLabels& labels) {
  if (labels.strings.empty()) {
    std::int64_t next = 0;  // as long as labels are the numbers of their classes
    for (const std::int64_t label : labels.numbers) next += label == next ? 1 : 0;
    if (next == static_cast<std::int64_t>(labels.numbers.size())) return op.Set(i, classes);
    op.Set(i, op.Call(names::kGather, {op.IntsValue(labels.numbers), classes}, {{"axis", std::int64_t{0}}},
                      classes->type));
    return;
  }
  op.Set(i, classes);
  if (op.Wants(i)) op.lowering().strings().Set(op.scope().Find(op.node().output(i)), labels.strings);
}

Value* HighestClass(Op& op, Value* scores) {
  return op.Call(names::kArgMax, {scores}, {{"axis", std::int64_t{1}}, {"keepdims", std::int64_t{0}}},
                 TensorOf(kInt64, {scores->type.dims[0]}));
}

Result<Value*> PostTransformed(Op& op, Value* scores, const std::string& transform) {
  if (transform == "NONE") return scores;
  if (transform == "LOGISTIC") return op.Unary(names::kSigmoid, scores);
  if (transform == "SOFTMAX")
    return op.Call(names::kSoftmax, {scores}, {{"axis", std::int64_t{1}}}, scores->type);
  if (transform == "SOFTMAX_ZERO") return SoftmaxZero(op, scores);
  if (transform == "PROBIT") return Probit(op, scores);
  return op.Invalid("post_transform is '{}', expected NONE, LOGISTIC, SOFTMAX, SOFTMAX_ZERO or PROBIT",
                    transform);
}

Status SetScores(Op& op, int i, Value* scores) {
  const Result<Value*> given = PostTransformed(op, scores, op.String("post_transform", "NONE"));
  if (!given) return Forward(given);
  op.Set(i, *given);
  return {};
}

Result<Value*> RowsOf(Op& op, DLDataType dtype) {
  Value* x = op.Cast(op.in(0), dtype);
  if (x->type.rank() == 1) x = op.Reshape(x, {1, x->type.dims[0]});
  if (x->type.rank() != 2 || x->type.dims[1].constant().value_or(1) < 1)
    return op.Unsupported("X has shape {}, expected [N, features]", ShapeText(x->type.dims));
  return x;
}

Result<Value*> FeaturesOf(Op& op, DLDataType dtype, std::int64_t told, std::int64_t* features) {
  Result<Value*> x = RowsOf(op, dtype);
  if (!x) return x;
  const std::optional<std::int64_t> known = (*x)->type.dims[1].constant();
  if (!known && told < 1)
    return op.Unsupported("X has shape {}, expected features that are known", ShapeText((*x)->type.dims));
  *features = known.value_or(told);
  return known ? *x : op.Reshape(*x, {(*x)->type.dims[0], DimExpr(told)});
}

}  // namespace rewire::compiler
