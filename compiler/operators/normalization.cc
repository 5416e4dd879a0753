// SPDX-License-Identifier: Apache-2.0
//
// Softmax, and operators that divide by a deviation or a norm.
#include <limits>

#include "rewire/compiler/lower/registry.h"
#include "rewire/compiler/operators/building_blocks.h"
#include "rewire/kernels/contract/elementwise.h"
#include "rewire/kernels/contract/movement.h"
#include "rewire/kernels/contract/normalization.h"
#include "rewire/kernels/contract/reduction.h"

namespace rewire::compiler {
namespace {

// Before version 13 the axes from `axis` on count as one.
Status LowerSoftmax(Op& op, const Operator& row) {
  Value* x = op.in(0);
  const int rank = x->type.rank();
  if (op.opset() >= 13) {
    Result<int> axis = op.Axis(op.Int("axis", -1), rank);
    if (!axis) return Forward(axis);
    op.Set(0, op.Call(row.kernel, {x}, {{"axis", std::int64_t{*axis}}}, x->type));
    return {};
  }
  Result<int> axis = op.Axis(op.Int("axis", 1), rank);
  if (!axis) return Forward(axis);
  const Shape& dims = x->type.dims;
  Value* flat = op.Reshape(x, {ProductOf(Shape(dims.begin(), dims.begin() + *axis)),
                               ProductOf(Shape(dims.begin() + *axis, dims.end()))});
  Value* result = op.Call(row.kernel, {flat}, {{"axis", std::int64_t{1}}}, flat->type);
  op.Set(0, op.Reshape(result, dims));
  return {};
}

// In training the statistics are the batch's own, and the running ones move towards them.
Status LowerTrainingBatchNorm(Op& op, const Operator& row) {
  Value* x = op.in(0);
  Ints axes;
  for (int i = 0; i < x->type.rank(); ++i) {
    if (i != 1) axes.push_back(i);
  }
  const double momentum = op.Float("momentum", 0.9);
  Value* kept = op.Reduce(names::kReduceMean, x, axes, true);
  Value* centered = op.Apply(names::kSub, x, kept);
  Value* squares = op.Apply(names::kMul, centered, centered);
  Value* statistics[] = {op.Reduce(names::kReduceMean, x, axes, false),
                         op.Reduce(names::kReduceMean, squares, axes, false)};
  op.Set(0, op.Call(row.kernel, {x, op.in(1), op.in(2), statistics[0], statistics[1]},
                    {{"epsilon", op.Float("epsilon", 1e-5)}}, x->type));
  for (int i = 0; i < 2; ++i) {
    const DLDataType dtype = op.in(3 + i)->type.dtype;
    Value* old = op.Apply(names::kMul, op.in(3 + i), op.Scalar(dtype, momentum));
    Value* fresh = op.Apply(names::kMul, op.Cast(statistics[i], dtype), op.Scalar(dtype, 1 - momentum));
    op.Set(1 + i, op.Apply(names::kAdd, old, fresh));
  }
  return {};
}

Status LowerBatchNormalization(Op& op, const Operator& row) {
  if (op.Int("training_mode", 0) != 0) return LowerTrainingBatchNorm(op, row);
  std::vector<Value*> arguments = op.Arguments(0, 4);
  const Type type = arguments[0]->type;
  // Elements without an axis of channels have one channel.
  const bool is_flat = type.rank() == 1;
  if (is_flat) arguments[0] = op.Reshape(arguments[0], {type.dims[0], DimExpr(1)});
  Value* out = op.Call(row.kernel, arguments, {{"epsilon", op.Float("epsilon", 1e-5)}}, arguments[0]->type);
  op.Set(0, is_flat ? op.Reshape(out, type.dims) : out);
  return {};
}

// True if the dimensions are these in every run, of a value that broadcasts to them.
bool HasDims(const Value* value, const Shape& dims) {
  if (value->type.dims.size() != dims.size()) return false;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const std::optional<std::int64_t> size = value->type.dims[i].constant();
    if ((!size || *size == 1) && value->type.dims[i] != dims[i]) return false;
  }
  return true;
}

// A scale or bias with the dimensions of the normalized axes, to which it broadcasts.
Value* OverNormalized(Op& op, Value* value, const Shape& dims) {
  if (HasDims(value, dims)) return value;
  return op.Call(names::kExpand, {value}, {}, TensorOf(value->type.dtype, dims));
}

Shape NormalizedDims(const Value* x, int axis) {
  return Shape(x->type.dims.begin() + axis, x->type.dims.end());
}

Status LowerLayerNormalization(Op& op, const Operator& row) {
  Value* x = op.in(0);
  Result<int> axis = op.Axis(op.Int("axis", -1), x->type.rank());
  if (!axis) return Forward(axis);
  const Shape dims = NormalizedDims(x, *axis);
  Value* scale = op.in(1);
  Value* bias = op.in(2) != nullptr ? op.in(2) : op.Missing(x->type.dtype);
  // Scale and bias broadcast to x. The kernel takes those that are the same for each row.
  const int rank = static_cast<int>(dims.size());
  const bool by_row = scale->type.rank() <= rank && (op.in(2) == nullptr || bias->type.rank() <= rank);
  if (by_row) {
    scale = OverNormalized(op, scale, dims);
    if (op.in(2) != nullptr) bias = OverNormalized(op, bias, dims);
  } else {
    scale = OverNormalized(op, op.Scalar(scale->type.dtype, 1), dims);
    bias = op.Missing(x->type.dtype);
  }
  Op::KernelCall call;
  call.kernel = row.kernel;
  call.inputs = {x, scale, bias};
  call.attributes = {{"axis", std::int64_t{*axis}}, {"epsilon", op.Float("epsilon", 1e-5)}};
  call.outputs = {x->type};
  if (op.Wants(1) || op.Wants(2)) {
    const Type statistics = TensorOf(x->type.dtype, contract::StatisticsSizes<Shape>(x->type.dims, *axis));
    call.outputs.insert(call.outputs.end(), 2, statistics);
  }
  std::vector<Value*> outputs = op.Call(std::move(call));
  if (!by_row) {
    outputs[0] = op.Apply(names::kMul, outputs[0], op.in(1));
    if (op.in(2) != nullptr) outputs[0] = op.Apply(names::kAdd, outputs[0], op.in(2));
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) op.Set(static_cast<int>(i), outputs[i]);
  return {};
}

Status LowerRmsNormalization(Op& op, const Operator& /*row*/) {
  Result<int> axis = op.Axis(op.Int("axis", -1), op.in(0)->type.rank());
  if (!axis) return Forward(axis);
  if (op.Wants(1)) return op.Unsupported("the inverse root of the mean square as an output");
  op.Set(0, RmsNormOf(op, op.in(0), op.in(1), *axis, op.Float("epsilon", 1e-5)));
  return {};
}

Status LowerGroupNormalization(Op& op, const Operator& row) {
  Attributes attributes = {{"epsilon", op.Float("epsilon", 1e-5)}};
  if (op.HasAttribute("num_groups")) attributes.push_back({"num_groups", op.Int("num_groups", 0)});
  op.Set(0, op.Call(row.kernel, op.Arguments(0, 2), std::move(attributes), op.in(0)->type));
  return {};
}

Status LowerLrn(Op& op, const Operator& row) {
  op.Set(0, op.Call(row.kernel, {op.in(0)},
                    {{"size", op.Int("size", 1)},
                     {"alpha", op.Float("alpha", 1e-4)},
                     {"beta", op.Float("beta", 0.75)},
                     {"bias", op.Float("bias", 1)}},
                    op.in(0)->type));
  return {};
}

// (x - mean) / (deviation + 1e-9) over the axes.
Status LowerMeanVarianceNormalization(Op& op, const Operator& /*row*/) {
  Value* x = op.in(0);
  Ints axes = op.IntList("axes", {0, 2, 3});
  for (const std::int64_t axis : axes) {
    if (Result<int> at = op.Axis(axis, x->type.rank()); !at) return Forward(at);
  }
  Value* mean = op.Reduce(names::kReduceMean, x, axes, true);
  Value* centered = op.Apply(names::kSub, x, mean);
  Value* variance = op.Reduce(names::kReduceMean, op.Apply(names::kMul, centered, centered), axes, true);
  Value* deviation = op.Apply(names::kAdd, op.Unary(names::kSqrt, variance), op.Scalar(x->type.dtype, 1e-9));
  op.Set(0, op.Apply(names::kDiv, centered, deviation));
  return {};
}

Status LowerLpNormalization(Op& op, const Operator& /*row*/) {
  Value* x = op.in(0);
  Result<int> axis = op.Axis(op.Int("axis", -1), x->type.rank());
  if (!axis) return Forward(axis);
  const char* kernel = op.Int("p", 2) == 1 ? names::kReduceL1 : names::kReduceL2;
  // A norm of 0 gives 0: an infinite divisor does that.
  Value* norm = op.Reduce(kernel, x, {*axis}, true);
  Value* is_zero = op.Compare(names::kEqual, norm, op.Scalar(x->type.dtype, 0));
  Value* infinity = op.Scalar(x->type.dtype, std::numeric_limits<double>::infinity());
  Value* divisor = op.Call(names::kWhere, {is_zero, infinity, norm}, {}, norm->type);
  op.Set(0, op.Apply(names::kDiv, x, divisor));
  return {};
}

}  // namespace

Value* RmsNormOf(Op& op, Value* x, Value* scale, int axis, double epsilon) {
  const Shape dims = NormalizedDims(x, axis);
  const bool by_row = scale->type.rank() <= static_cast<int>(dims.size());
  Value* inside = OverNormalized(op, by_row ? scale : op.Scalar(scale->type.dtype, 1), dims);
  Value* normalized =
      op.Call(names::kRmsNorm, {x, inside}, {{"axis", std::int64_t{axis}}, {"epsilon", epsilon}}, x->type);
  return by_row ? normalized : op.Apply(names::kMul, normalized, scale);
}

std::span<const Operator> NormalizationOperators() {
  static constexpr Operator kOperators[] = {
      {"BatchNormalization", 7, 0, 5, 5, "epsilon ~momentum spatial=1 training_mode", LowerBatchNormalization,
       names::kBatchNorm, kKeepsRank},
      {"BatchNormalization", 1, 6, 5, 5, "epsilon ~is_test ~momentum spatial=1", LowerBatchNormalization,
       names::kBatchNorm, kKeepsRank},
      {"GroupNormalization", 18, 0, 3, 3, "epsilon num_groups ~stash_type", LowerGroupNormalization,
       names::kGroupNorm, kKeepsRank},
      {"Hardmax", 1, 0, 1, 1, "axis", LowerSoftmax, names::kHardmax, kKeepsRank},
      {"InstanceNormalization", 6, 0, 3, 3, "epsilon", LowerGroupNormalization, names::kGroupNorm,
       kKeepsRank},
      {"LRN", 1, 0, 1, 1, "alpha beta bias size", LowerLrn, names::kLrn, kKeepsRank},
      {"LayerNormalization", 17, 0, 2, 3, "axis epsilon ~stash_type", LowerLayerNormalization,
       names::kLayerNorm, kKeepsRank},
      {"LogSoftmax", 1, 0, 1, 1, "axis", LowerSoftmax, names::kLogSoftmax, kKeepsRank},
      {"LpNormalization", 1, 0, 1, 1, "axis p", LowerLpNormalization, nullptr, kKeepsRank},
      {"MeanVarianceNormalization", 9, 0, 1, 1, "axes", LowerMeanVarianceNormalization, nullptr, kKeepsRank},
      {"RMSNormalization", 23, 0, 2, 2, "axis epsilon ~stash_type", LowerRmsNormalization, nullptr,
       kKeepsRank},
      // ONNX Runtime's optimizer writes it into ONNX's own domain.
      {"SimplifiedLayerNormalization", 1, 0, 2, 2, "axis epsilon ~stash_type", LowerRmsNormalization},
      {"Softmax", 1, 0, 1, 1, "axis", LowerSoftmax, names::kSoftmax, kKeepsRank},
  };
  return kOperators;
}

}  // namespace rewire::compiler
