// SPDX-License-Identifier: Apache-2.0
// Reductions along axes, and positions of extremes.
#include <numeric>

#include "rewire/compiler/lower/registry.h"
#include "rewire/kernels/contract/elementwise.h"
#include "rewire/kernels/contract/reduction.h"
#include "rewire/kernels/contract/reduction_attributes.h"
#include "rewire/kernels/contract/shape.h"

namespace rewire::compiler {
namespace {

// Axes are an attribute, and an input from version 18 on; of ReduceSum from 13 on.
bool AxesAreInput(const Op& op) { return op.opset() >= (op.type() == "ReduceSum" ? 13 : 18); }

Value* ReduceDynamic(Op& op, const std::string& kernel, Value* x, int rank) {
  Value* axes = op.in(1);
  const Attributes attributes = {{"keepdims", op.Int("keepdims", 1)},
                                 {"noop_with_empty_axes", op.Int("noop_with_empty_axes", 0)}};
  return op.CallShaped(kernel, {x, axes}, attributes, x->type.dtype, Op::AllOpen(rank),
                       {names::kShapeReduce, {op.ShapeOf(x), axes}, attributes});
}

// Over no axes each element is reduced by itself.
Value* ReduceNothing(Op& op, const std::string& kernel, Value* x) {
  if (kernel == names::kReduceSumSquare) return op.Apply(names::kMul, x, x);
  if (kernel == names::kReduceL1 || kernel == names::kReduceL2) return op.Unary(names::kAbs, x);
  return x;
}

Result<Value*> LowerReduced(Op& op, const std::string& kernel, Value* x) {
  const int rank = x->type.rank();
  const bool keepdims = op.Int("keepdims", 1) != 0;
  const bool noop = op.Int("noop_with_empty_axes", 0) != 0;
  Ints axes = op.IntList("axes");
  if (AxesAreInput(op) && op.in(1) != nullptr) {
    const std::optional<Ints> known = KnownInts(op.in(1));
    if (!known) {
      if (keepdims) return ReduceDynamic(op, kernel, x, rank);
      const Result<std::int64_t> count = op.Length(op.in(1), "the list of axes");
      if (!count) return Forward(count);
      if (*count > rank) return op.Invalid("{} axes of an input of rank {}", *count, rank);
      return ReduceDynamic(op, kernel, x, *count == 0 && !noop ? 0 : rank - static_cast<int>(*count));
    }
    axes = *known;
  }
  for (std::int64_t& axis : axes) {
    Result<int> at = op.Axis(axis, rank);
    if (!at) return Forward(at);
    axis = *at;
  }
  if (axes.empty() && noop) return ReduceNothing(op, kernel, x);
  if (axes.empty()) {
    axes.resize(static_cast<std::size_t>(rank));
    std::iota(axes.begin(), axes.end(), 0);
  }
  if (axes.empty()) return ReduceNothing(op, kernel, x);  // a scalar
  return op.Reduce(kernel, x, axes, keepdims);
}

Status LowerReduce(Op& op, const Operator& row) {
  const DLDataType dtype = op.in(0)->type.dtype;
  Value* x = dtype == kBool8 ? op.Cast(op.in(0), kUInt8) : op.in(0);
  Result<Value*> reduced = LowerReduced(op, row.kernel, x);
  if (!reduced) return Forward(reduced);
  op.Set(0, op.Cast(*reduced, dtype));
  return {};
}

// Logarithms of integers are computed in f64, and truncated toward zero.
Status LowerReduceLogSum(Op& op, const Operator& row) {
  Result<Value*> sum = LowerReduced(op, row.kernel, op.WithoutIntegers(op.in(0)));
  if (!sum) return Forward(sum);
  op.Set(0, op.Cast(op.Unary(names::kLog, *sum), op.in(0)->type.dtype));
  return {};
}

Status LowerReduceLogSumExp(Op& op, const Operator& row) {
  Value* x = op.in(0);
  const bool is_whole = x->type.dtype == kInt64 || x->type.dtype == kInt32;
  Result<Value*> reduced = LowerReduced(op, row.kernel, is_whole ? x : op.WithoutIntegers(x));
  if (!reduced) return Forward(reduced);
  op.Set(0, op.Cast(*reduced, op.in(0)->type.dtype));
  return {};
}

Status LowerArgReduce(Op& op, const Operator& row) {
  Value* x = op.in(0);
  Result<int> axis = op.Axis(op.Int("axis", 0), x->type.rank());
  if (!axis) return Forward(axis);
  const bool keepdims = op.Int("keepdims", 1) != 0;
  std::vector<bool> reduced(x->type.dims.size());
  reduced[*axis] = true;
  op.Set(0, op.Call(row.kernel, {x},
                    {{"axis", std::int64_t{*axis}},
                     {"keepdims", std::int64_t{keepdims}},
                     {"select_last_index", op.Int("select_last_index", 0)}},
                    TensorOf(kInt64, contract::ReducedSizes<Shape>(x->type.dims, reduced, keepdims))));
  return {};
}

}  // namespace

std::span<const Operator> ReductionOperators() {
  static constexpr Operator kOperators[] = {
      {"ArgMax", 1, 0, 1, 1, "axis keepdims select_last_index", LowerArgReduce, names::kArgMax},
      {"ArgMin", 1, 0, 1, 1, "axis keepdims select_last_index", LowerArgReduce, names::kArgMin},
      {"ReduceL1", 1, 0, 1, 2, "axes<18 keepdims noop_with_empty_axes", LowerReduce, names::kReduceL1},
      {"ReduceL2", 1, 0, 1, 2, "axes<18 keepdims noop_with_empty_axes", LowerReduce, names::kReduceL2},
      {"ReduceLogSum", 1, 0, 1, 2, "axes<18 keepdims noop_with_empty_axes", LowerReduceLogSum,
       names::kReduceSum},
      {"ReduceLogSumExp", 1, 0, 1, 2, "axes<18 keepdims noop_with_empty_axes", LowerReduceLogSumExp,
       names::kReduceLogSumExp},
      {"ReduceMax", 1, 0, 1, 2, "axes<18 keepdims noop_with_empty_axes", LowerReduce, names::kReduceMax},
      {"ReduceMean", 1, 0, 1, 2, "axes<18 keepdims noop_with_empty_axes", LowerReduce, names::kReduceMean},
      {"ReduceMin", 1, 0, 1, 2, "axes<18 keepdims noop_with_empty_axes", LowerReduce, names::kReduceMin},
      {"ReduceProd", 1, 0, 1, 2, "axes<18 keepdims noop_with_empty_axes", LowerReduce, names::kReduceProd},
      {"ReduceSum", 1, 0, 1, 2, "axes<13 keepdims noop_with_empty_axes", LowerReduce, names::kReduceSum},
      {"ReduceSumSquare", 1, 0, 1, 2, "axes<18 keepdims noop_with_empty_axes", LowerReduce,
       names::kReduceSumSquare},
  };
  return kOperators;
}

}  // namespace rewire::compiler
