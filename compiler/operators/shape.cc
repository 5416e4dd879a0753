// SPDX-License-Identifier: Apache-2.0
// Operators that ask for shapes or change them without touching elements.
#include <algorithm>

#include "rewire/compiler/import/onnx_proto.h"
#include "rewire/compiler/lower/registry.h"
#include "rewire/compiler/operators/float_constant.h"
#include "rewire/compiler/operators/texts.h"
#include "rewire/kernels/contract/elementwise.h"
#include "rewire/kernels/contract/generator.h"
#include "rewire/kernels/contract/indexing.h"
#include "rewire/kernels/contract/movement.h"
#include "rewire/kernels/contract/movement_attributes.h"
#include "rewire/kernels/contract/reduction.h"
#include "rewire/kernels/contract/reduction_attributes.h"
#include "rewire/kernels/contract/shape.h"

namespace rewire::compiler {
namespace {

Status LowerIdentity(Op& op, const Operator& /*row*/) {
  op.Set(0, op.in(0));
  return {};
}

// Elements are dropped where a random number in [0, 1) is below the ratio; the others grow to make up for it.
Status LowerTrainingDropout(Op& op) {
  Value* x = op.in(0);
  const DLDataType dtype = x->type.dtype;
  Value* training = op.Reshape(op.in(2), {});
  Value* ratio = op.in(1) == nullptr ? op.Scalar(dtype, 0.5) : op.Reshape(op.Cast(op.in(1), dtype), {});
  Attributes attributes;
  if (op.HasAttribute("seed")) attributes.push_back({"seed", op.Int("seed", 0)});
  Value* random = op.Call(names::kRandomUniform, {}, std::move(attributes), x->type);
  Value* dropped = op.Apply(names::kAnd, op.Compare(names::kLess, random, ratio), training);
  Value* kept = op.Apply(names::kSub, op.Scalar(dtype, 1), ratio);
  Value* factor = op.Call(names::kWhere, {training, op.Unary(names::kReciprocal, kept), op.Scalar(dtype, 1)},
                          {}, TensorOf(dtype, {}));
  Value* grown = op.Apply(names::kMul, x, factor);
  op.Set(0, op.Call(names::kWhere, {dropped, op.Scalar(dtype, 0), grown}, {}, x->type));
  if (op.Wants(1)) op.Set(1, op.Unary(names::kNot, dropped));
  return {};
}

// At inference a dropout passes its input on; its mask lets everything through.
Status LowerDropout(Op& op, const Operator& /*row*/) {
  Value* x = op.in(0);
  const std::optional<Ints> training = KnownInts(op.in(2));
  if (op.in(2) != nullptr && (!training || training->empty() || (*training)[0] != 0)) {
    return LowerTrainingDropout(op);
  }
  op.Set(0, x);
  if (!op.Wants(1)) return {};
  const DLDataType mask = op.opset() >= 10 ? kBool8 : x->type.dtype;
  Value* one = op.Cast(op.Scalar(kUInt8, 1), mask);
  op.Set(1, op.Call(names::kExpand, {one}, {}, TensorOf(mask, x->type.dims)));
  return {};
}

Status LowerConstant(Op& op, const Operator& /*row*/) {
  if (op.HasAttribute("value")) {
    const Result<std::optional<Value*>> strings =
        op.lowering().StringConstant(op.Find("value")->t(), op.NextName());
    if (!strings) return Forward(strings);
    if (*strings) {
      op.Set(0, **strings);
      return {};
    }
    Result<HostTensor> tensor = op.TensorAttribute("value");
    if (!tensor) return Forward(tensor);
    op.Set(0, op.OwnConstant(*std::move(tensor)));
  } else if (const onnx::AttributeProto* sparse = op.Find("sparse_value")) {
    if (!sparse->has_sparse_tensor()) return op.Invalid("attribute 'sparse_value' is no sparse tensor");
    Result<HostTensor> tensor = op.lowering().ReadSparse(sparse->sparse_tensor());
    if (!tensor) return Forward(tensor);
    op.Set(0, op.Constant(*std::move(tensor)));
  } else if (op.HasAttribute("value_int")) {
    op.Set(0, op.IntValue(op.Int("value_int", 0)));
  } else if (op.HasAttribute("value_ints")) {
    op.Set(0, op.IntsValue(op.IntList("value_ints")));
  } else if (op.HasAttribute("value_float")) {
    op.Set(0, op.Scalar(kFloat32, op.Float("value_float", 0)));
  } else if (op.HasAttribute("value_floats")) {
    op.Set(0, FloatsValue(op, op.FloatList("value_floats")));
  } else {
    // One string, or a list of them.
    onnx::TensorProto strings;
    strings.set_data_type(onnx::TensorProto::STRING);
    if (op.HasAttribute("value_string")) {
      strings.add_string_data(TextOf(op, "value_string", ""));
    } else {
      if (!op.HasAttribute("value_strings")) return op.Invalid("it has no value");
      for (const std::string& text : TextsOf(op, "value_strings")) strings.add_string_data(text);
      strings.add_dims(strings.string_data_size());
    }
    const Result<std::optional<Value*>> value = op.lowering().StringConstant(strings, op.NextName());
    if (!value) return Forward(value);
    op.Set(0, **value);
  }
  return {};
}

Status LowerShape(Op& op, const Operator& /*row*/) {
  Value* x = op.in(0);
  if (!x->type.ranked) {
    if (op.HasAttribute("start") || op.HasAttribute("end")) {
      return op.Unsupported("a part of the shape of a value of unknown rank");
    }
    op.Set(0, op.ShapeOf(x));
    return {};
  }
  const std::int64_t rank = x->type.rank();
  const auto hold = [&](std::int64_t axis) {
    return std::clamp<std::int64_t>(axis < 0 ? axis + rank : axis, 0, rank);
  };
  const std::int64_t start = hold(op.Int("start", 0));
  const std::int64_t end = std::max(start, hold(op.Int("end", rank)));
  op.Set(0, op.DimsValue(Shape(x->type.dims.begin() + start, x->type.dims.begin() + end)));
  return {};
}

Status LowerSize(Op& op, const Operator& /*row*/) {
  if (!op.in(0)->type.ranked) {
    op.Set(0, op.Reduce(names::kReduceProd, op.ShapeOf(op.in(0)), {0}, false));
    return {};
  }
  op.Set(0, op.Reshape(op.DimsValue({ProductOf(op.in(0)->type.dims)}), {}));
  return {};
}

// Dimensions of a Reshape whose target is known as expressions.
Result<Shape> ReshapedDims(Op& op, const Shape& x, const Shape& target, bool allow_zero) {
  const auto quotient = [&](const DimExpr& left, const DimExpr& known) -> std::optional<DimExpr> {
    if (left.IsConstant() && known.IsConstant() && *left.constant() % *known.constant() != 0)
      return std::nullopt;
    const Graph& graph = op.lowering().graph();
    const std::optional<DimExpr> exact =
        DimExpr::ExactQuotient(graph.WithoutOwnSymbols(left), graph.WithoutOwnSymbols(known));
    return exact ? *exact : DimExpr::FloorDiv(left, known);
  };
  Shape dims;
  const Status fits = contract::ReshapedSizes(x, target, allow_zero, quotient, &dims, op.ShapeError());
  if (!fits) return Forward(fits);
  return dims;
}

Status LowerReshape(Op& op, const Operator& /*row*/) {
  Value* x = op.in(0);
  Value* target = op.opset() < 5 ? op.IntsValue(op.IntList("shape")) : op.in(1);
  if (target == nullptr) return op.Invalid("input 1 is missing");
  const bool allow_zero = op.Int("allowzero", 0) != 0;
  if (const std::optional<Shape> known = KnownElements(target); known && x->type.ranked) {
    Result<Shape> dims = ReshapedDims(op, x->type.dims, *known, allow_zero);
    if (!dims) return Forward(dims);
    op.Set(0, op.Reshape(x, *std::move(dims)));
    return {};
  }
  const auto resolved = [&](const DimExpr& length) {
    return op.Call(names::kShapeReshape, {op.ShapeOf(x), target}, {{"allowzero", std::int64_t{allow_zero}}},
                   TensorOf(kInt64, {length}));
  };
  const Type& type = target->type;
  if (type.ranked && type.rank() == 1 && !type.dims[0].IsConstant()) {
    op.Set(0, op.ReshapeUnranked(x, resolved(type.dims[0])));  // the run knows the rank
    return {};
  }
  const Result<std::int64_t> rank = op.Length(target, "the target shape");
  if (!rank) return Forward(rank);
  op.Set(0, op.ReshapeTo(x, resolved(*rank), static_cast<int>(*rank)));
  return {};
}

Status LowerFlatten(Op& op, const Operator& /*row*/) {
  const Shape& dims = op.in(0)->type.dims;
  const auto rank = static_cast<std::int64_t>(dims.size());
  std::int64_t axis = op.Int("axis", 1);
  if (axis < -rank || axis > rank) return op.Invalid("axis is {}, the input has rank {}", axis, rank);
  if (axis < 0) axis += rank;
  op.Set(0, op.Reshape(op.in(0), {ProductOf(Shape(dims.begin(), dims.begin() + axis)),
                                  ProductOf(Shape(dims.begin() + axis, dims.end()))}));
  return {};
}

// Axes as an attribute up to a version, as input 1 from it on. Nothing when the input is not a constant.
std::optional<Ints> AxesOf(const Op& op, std::int64_t input_since, bool* dynamic) {
  *dynamic = false;
  if (op.opset() < input_since)
    return op.HasAttribute("axes") ? std::optional(op.IntList("axes")) : std::nullopt;
  if (op.in(1) == nullptr) return std::nullopt;
  std::optional<Ints> axes = KnownInts(op.in(1));
  *dynamic = !axes;
  return axes;
}

// The shape of a value with dimensions added or removed at axes that are known when the program runs.
Status LowerDynamicAxes(Op& op, const char* kernel, int sign) {
  Value* x = op.in(0);
  const Result<std::int64_t> count = op.Length(op.in(1), "the list of axes");
  if (!count) return Forward(count);
  const std::int64_t rank = x->type.rank() + sign * *count;
  if (rank < 0) return op.Invalid("{} axes of an input of rank {}", *count, x->type.rank());
  Value* shape = op.Call(kernel, {op.ShapeOf(x), op.in(1)}, {}, TensorOf(kInt64, {rank}));
  op.Set(0, op.ReshapeTo(x, shape, static_cast<int>(rank)));
  return {};
}

// Without all dimensions that turn out to be 1 when the program runs: how many are left is not known before.
Status LowerSqueezeOnes(Op& op) {
  Value* shape = op.ShapeOf(op.in(0));
  Value* kept = op.Unary(names::kNot, op.Compare(names::kEqual, shape, op.IntValue(1)));
  Value* left = op.CallShaped(names::kCompress, {shape, kept}, {}, kInt64, Op::AllOpen(1),
                              {names::kShapeCompress, {shape, kept}, {}});
  op.Set(0, op.ReshapeUnranked(op.in(0), left));
  return {};
}

// For each way in which the dimensions from `next` on may be 1, the result without those that are.
Continuation SqueezedForEachRank(Op& op, std::vector<bool> gone, std::size_t next) {
  Lowering& lowering = op.lowering();
  const Shape& dims = op.in(0)->type.dims;
  while (next < dims.size() && dims[next].IsConstant()) ++next;
  Continuation continuation;
  if (next == dims.size()) {
    continuation.results = {op.Reshape(op.in(0), contract::ReducedSizes<Shape>(dims, gone, false))};
    continuation.block = lowering.block();
    return continuation;
  }
  Value* size = op.Reshape(op.DimsValue({dims[next]}), {});
  Value* is_one = op.Compare(names::kEqual, size, op.IntValue(1));
  continuation.split = lowering.graph().NewNode(NodeKind::kIf);
  continuation.split->inputs.push_back(is_one);
  continuation.split->blocks.resize(2);
  for (const std::size_t branch : {0, 1}) {
    gone[next] = branch == 0;
    Block* around = lowering.SwapBlock(&continuation.split->blocks[branch]);
    continuation.branches.push_back(SqueezedForEachRank(op, gone, next + 1));
    lowering.SwapBlock(around);
  }
  lowering.Append(continuation.split);
  return continuation;
}

Status LowerSqueezeOfUnknownRank(Op& op) {
  // Each of them doubles what follows.
  constexpr std::ptrdiff_t kMostUnknown = 3;
  const Shape& dims = op.in(0)->type.dims;
  const auto unknown =
      std::count_if(dims.begin(), dims.end(), [](const DimExpr& dim) { return !dim.IsConstant(); });
  op.lowering().NoteUnknownRank();
  if (!op.lowering().options().for_each_rank || unknown > kMostUnknown) return LowerSqueezeOnes(op);
  std::vector<bool> gone(dims.size(), false);
  for (std::size_t i = 0; i < dims.size(); ++i) gone[i] = dims[i].Is(1);
  return op.lowering().Deliver(&op, SqueezedForEachRank(op, gone, 0));
}

Status LowerSqueeze(Op& op, const Operator& /*row*/) {
  const Shape& dims = op.in(0)->type.dims;
  bool dynamic = false;
  const std::optional<Ints> axes = AxesOf(op, 13, &dynamic);
  if (dynamic) return LowerDynamicAxes(op, names::kShapeSqueeze, -1);
  if (!axes && !ConstantDims(dims)) return LowerSqueezeOfUnknownRank(op);
  std::vector<bool> gone(dims.size(), false);
  for (std::size_t i = 0; i < dims.size(); ++i) gone[i] = !axes && dims[i].Is(1);
  for (const std::int64_t axis : axes.value_or(Ints{})) {
    Result<int> at = op.Axis(axis, static_cast<int>(dims.size()));
    if (!at) return Forward(at);
    gone[static_cast<std::size_t>(*at)] = true;
  }
  Shape result;
  if (Status fits = contract::SqueezedSizes(dims, gone, &result, op.ShapeError()); !fits) return fits;
  op.Set(0, op.Reshape(op.in(0), std::move(result)));
  return {};
}

Status LowerUnsqueeze(Op& op, const Operator& /*row*/) {
  const Shape& dims = op.in(0)->type.dims;
  bool dynamic = false;
  const std::optional<Ints> axes = AxesOf(op, 13, &dynamic);
  if (dynamic) return LowerDynamicAxes(op, names::kShapeUnsqueeze, 1);
  if (!axes) return op.Invalid("it has no axes");
  const std::size_t rank = dims.size() + axes->size();
  std::vector<bool> added(rank, false);
  if (Status fits = contract::MarkAxes(*axes, rank, &added, op.ShapeError()); !fits) return fits;
  op.Set(0, op.Reshape(op.in(0), contract::UnsqueezedSizes<Shape>(dims, added, rank)));
  return {};
}

Status LowerConstantOfShape(Op& op, const Operator& /*row*/) {
  if (op.in(0)->type.rank() != 1)
    return op.Invalid("input has rank {}, expected a list of sizes", op.in(0)->type.rank());
  Value* fill = op.Scalar(kFloat32, 0);
  if (op.HasAttribute("value")) {
    Result<HostTensor> value = op.TensorAttribute("value");
    if (!value) return Forward(value);
    fill = op.Reshape(op.Constant(*std::move(value)), {});
  }
  op.Set(0, op.CallSized(names::kExpand, {fill}, {}, fill->type.dtype, op.in(0)));
  return {};
}

// Whether each size is that of the target, but where that is 1 or lacks an axis.
bool IsOf(const Shape& dims, const Shape& target) {
  const std::size_t more = dims.size() - target.size();
  for (std::size_t i = 0; i < target.size(); ++i) {
    if (!target[i].Is(1) && !(target[i] == dims[more + i])) return false;
  }
  return true;
}

Status LowerExpand(Op& op, const Operator& row) {
  Value* x = op.in(0);
  Value* target = op.in(1);
  if (const std::optional<Shape> known = KnownElements(target)) {
    Result<Shape> dims = op.Broadcast(x->type.dims, *known);
    if (!dims) return Forward(dims);
    Op::KernelCall call{row.kernel, {x}, {}, {TensorOf(x->type.dtype, *dims)}, {}};
    // The kernel sees x and the result, and would not notice a target that does not fit.
    if (!IsOf(*dims, *known)) {
      const DimExpr rank(static_cast<std::int64_t>(dims->size()));
      call.shapes.push_back(
          op.Call(names::kShapeBroadcast, {op.ShapeOf(x), target}, {}, TensorOf(kInt64, {rank})));
    }
    op.Set(0, op.Call(std::move(call))[0]);
    return {};
  }
  const Result<std::int64_t> length = op.Length(target, "the target shape");
  if (!length) return Forward(length);
  const std::int64_t rank = std::max<std::int64_t>(*length, x->type.rank());
  Value* shape = op.Call(names::kShapeBroadcast, {op.ShapeOf(x), target}, {}, TensorOf(kInt64, {rank}));
  // Only axes of size 1 grow.
  Op::OpenShape known(static_cast<std::size_t>(rank));
  for (std::size_t i = 1; i <= x->type.dims.size(); ++i) {
    const DimExpr& dim = x->type.dims[x->type.dims.size() - i];
    if (dim.IsConstant() && !dim.Is(1)) known[known.size() - i] = dim;
  }
  op.Set(0, op.CallSized(row.kernel, {x}, {}, x->type.dtype, shape, known));
  return {};
}

Status LowerTranspose(Op& op, const Operator& /*row*/) {
  const Shape& x = op.in(0)->type.dims;
  const Ints perm = op.IntList("perm");
  // To the kernel an empty list is none.
  if (op.HasAttribute("perm") && perm.empty() && !x.empty())
    return op.Invalid("perm has no axes, x has shape {}", ShapeText(x));
  Ints order;
  Shape dims;
  if (Status fits = contract::PermutedSizes(x, perm, &order, &dims, op.ShapeError()); !fits) return fits;
  op.Set(0, op.Transpose(op.in(0), order));
  return {};
}

}  // namespace

std::span<const Operator> ShapeOperators() {
  static constexpr Operator kOperators[] = {
      {"Constant", 1, 0, 0, 0,
       "sparse_value value value_float value_floats value_int value_ints value_string value_strings",
       LowerConstant},
      {"ConstantOfShape", 9, 0, 1, 1, "value", LowerConstantOfShape},
      {"Dropout", 7, 0, 1, 3, "~ratio ~seed", LowerDropout, nullptr, kKeepsRank},
      {"Expand", 8, 0, 2, 2, "", LowerExpand, names::kExpand, kMovesStrings},
      {"Flatten", 1, 0, 1, 1, "axis", LowerFlatten, nullptr, kMovesStrings},
      {"Identity", 1, 0, 1, 1, "", LowerIdentity, nullptr, kAnyKind | kMovesStrings | kKeepsRank},
      {"Reshape", 1, 0, 1, 2, "allowzero shape<5", LowerReshape, nullptr, kAnyRank | kMovesStrings},
      {"Shape", 1, 0, 1, 1, "end start", LowerShape, nullptr, kAnyRank | kTakesStrings},
      {"Size", 1, 0, 1, 1, "", LowerSize, nullptr, kAnyRank | kTakesStrings},
      {"Squeeze", 1, 0, 1, 2, "axes<13", LowerSqueeze, nullptr, kMovesStrings},
      {"Transpose", 1, 0, 1, 1, "perm", LowerTranspose, nullptr, kMovesStrings},
      {"Unsqueeze", 1, 0, 1, 2, "axes<13", LowerUnsqueeze, nullptr, kMovesStrings},
  };
  return kOperators;
}

}  // namespace rewire::compiler
