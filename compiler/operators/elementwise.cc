// SPDX-License-Identifier: Apache-2.0
// Operators that work element by element.
#include <algorithm>
#include <cmath>
#include <limits>

#include "rewire/compiler/ir/call_arguments.h"
#include "rewire/compiler/lower/registry.h"
#include "rewire/compiler/operators/known_elements.h"
#include "rewire/compiler/operators/text_values.h"
#include "rewire/kernels/contract/elementwise.h"
#include "rewire/kernels/contract/shape.h"
#include "rewire/kernels/contract/text.h"

namespace rewire::compiler {
namespace {

Status LowerUnary(Op& op, const Operator& row) {
  op.Set(0, op.Unary(row.kernel, op.in(0)));
  return {};
}

Status LowerNeg(Op& op, const Operator& row) {
  Value* result = op.Unary(row.kernel, op.in(0));
  PropagateNegation(op.in(0), result);
  op.Set(0, result);
  return {};
}

// A boolean for each element of x.
Value* Predicate(Op& op, const Operator& row, Attributes attributes) {
  Value* x = op.in(0);
  Op::KernelCall call{row.kernel, {x}, std::move(attributes), {x->type}, {}};
  call.outputs[0].dtype = kBool8;
  if (!x->type.ranked) call.shapes.push_back(op.ShapeOf(x));
  return op.Call(std::move(call))[0];
}

Status LowerUnaryBool(Op& op, const Operator& row) {
  op.Set(0, Predicate(op, row, {}));
  return {};
}

// Alpha, with the operator's default.
template <int kNumerator, int kDenominator>
Status LowerAlpha(Op& op, const Operator& row) {
  const double alpha = op.Float("alpha", double{kNumerator} / kDenominator);
  op.Set(0, op.Unary(row.kernel, op.in(0), {{"alpha", alpha}}));
  return {};
}

Status LowerSelu(Op& op, const Operator& row) {
  op.Set(0, op.Unary(row.kernel, op.in(0),
                     {{"alpha", op.Float("alpha", 1.67326319217681884765625)},
                      {"gamma", op.Float("gamma", 1.05070102214813232421875)}}));
  return {};
}

Status LowerHardSigmoid(Op& op, const Operator& row) {
  op.Set(0, op.Unary(row.kernel, op.in(0),
                     {{"alpha", op.Float("alpha", 0.2)}, {"beta", op.Float("beta", 0.5)}}));
  return {};
}

Status LowerShrink(Op& op, const Operator& row) {
  Value* shrunk = op.Unary(row.kernel, op.WithoutIntegers(op.in(0)),
                           {{"lambd", op.Float("lambd", 0.5)}, {"bias", op.Float("bias", 0)}});
  op.Set(0, op.Cast(shrunk, op.in(0)->type.dtype));
  return {};
}

Status LowerIsInf(Op& op, const Operator& row) {
  op.Set(0, Predicate(op, row,
                      {{"detect_positive", op.Int("detect_positive", 1)},
                       {"detect_negative", op.Int("detect_negative", 1)}}));
  return {};
}

Status LowerGelu(Op& op, const Operator& row) {
  op.Set(0, op.Unary(row.kernel, op.in(0), {{"approximate", op.String("approximate", "none")}}));
  return {};
}

// x / (1 + exp(-alpha * x))
Value* Swish(Op& op, Value* x) {
  const double alpha = op.Float("alpha", 1);
  Value* scaled = alpha == 1 ? x : op.Apply(names::kMul, x, op.Scalar(x->type.dtype, alpha));
  return op.Apply(names::kMul, x, op.Unary(names::kSigmoid, scaled));
}

Status LowerSwish(Op& op, const Operator& /*row*/) {
  op.Set(0, Swish(op, op.in(0)));
  return {};
}

Status LowerSwiGlu(Op& op, const Operator& /*row*/) {
  op.Set(0, op.Apply(names::kMul, Swish(op, op.in(0)), op.in(1)));
  return {};
}

Status LowerBitCast(Op& op, const Operator& row) {
  Value* x = op.in(0);
  const Result<DLDataType> dtype = op.DTypeAttribute("to", x->type.dtype);
  if (!dtype) return Forward(dtype);
  if (dtype->bits != x->type.dtype.bits)
    return op.Invalid("{} has other bits than {}", DTypeName(*dtype), DTypeName(x->type.dtype));
  Type type = x->type;
  type.dtype = *dtype;
  op.Set(0, op.Call(row.kernel, {x}, {}, std::move(type)));
  return {};
}

// Before version 7, `axis` says where b's dimensions lie in a's.
Result<Value*> AlignedOperand(Op& op) {
  Value* b = op.in(1);
  const bool has_axis = op.HasAttribute("axis");
  if (op.opset() >= 7 || op.Int("broadcast", 0) == 0 || !has_axis) return b;
  if (!op.in(0)->type.ranked || !b->type.ranked)
    return op.Unsupported("axis says nothing of an input whose rank is not known");
  const int rank = op.in(0)->type.rank();
  Result<int> axis = op.Axis(op.Int("axis", 0), rank);
  if (!axis) return Forward(axis);
  Shape dims = b->type.dims;
  if (*axis + b->type.rank() > rank) return op.Invalid("axis {} leaves no room for input 1", *axis);
  dims.resize(static_cast<std::size_t>(rank - *axis), DimExpr(1));
  return op.Reshape(b, std::move(dims));
}

Status LowerBinary(Op& op, const Operator& row) {
  Result<Value*> b = AlignedOperand(op);
  if (!b) return Forward(b);
  Result<Value*> result = op.Binary(row.kernel, op.in(0), *b);
  if (!result) return Forward(result);
  PropagateBinary(op.type(), op.in(0), *b, *result);
  op.Set(0, *result);
  return {};
}

Status LowerCompare(Op& op, const Operator& row) {
  Result<Value*> b = AlignedOperand(op);
  if (!b) return Forward(b);
  Result<Value*> result = op.BinaryTo(row.kernel, op.in(0), *b, kBool8);
  if (!result) return Forward(result);
  PropagateBinary(op.type(), op.in(0), *b, *result);
  op.Set(0, *result);
  return {};
}

Status LowerEqual(Op& op, const Operator& row) {
  const StringTables& strings = op.lowering().strings();
  if (!strings.Has(op.in(0)) && !strings.Has(op.in(1))) return LowerCompare(op, row);
  if (!strings.Has(op.in(0)) || !strings.Has(op.in(1)))
    return op.Invalid("one input is strings, the other is not");
  Result<Shape> dims = op.Broadcast(op.in(0)->type.dims, op.in(1)->type.dims);
  if (!dims) return Forward(dims);
  std::vector<Value*> arguments;
  for (int i = 0; i < 2; ++i) {
    for (Value* part : ExpandedTexts(op, TextTensorOf(op, op.in(i)), *dims).arguments())
      arguments.push_back(part);
  }
  op.Set(0, op.Call(names::kTextEqual, arguments, {}, TensorOf(kBool8, *dims)));
  return {};
}

Status LowerVariadic(Op& op, const Operator& row) {
  Value* result = op.in(0);
  for (int i = 1; i < op.inputs(); ++i) {
    Result<Value*> next = op.Binary(row.kernel, result, op.in(i));
    if (!next) return Forward(next);
    result = *next;
  }
  op.Set(0, result);
  return {};
}

// Halves are added as f32 and rounded once: one kernel does all of that (fuse-elementwise).
Status LowerMean(Op& op, const Operator& /*row*/) {
  const DLDataType dtype = op.in(0)->type.dtype;
  if (op.inputs() == 1) {
    op.Set(0, op.in(0));
    return {};
  }
  const DLDataType wide = dtype == kFloat16 ? kFloat32 : dtype;
  Value* sum = op.Cast(op.in(0), wide);
  for (int i = 1; i < op.inputs(); ++i) {
    Result<Value*> next = op.Binary(names::kAdd, sum, op.Cast(op.in(i), wide));
    if (!next) return Forward(next);
    sum = *next;
  }
  Result<Value*> mean = op.Binary(names::kDiv, sum, op.Scalar(wide, op.inputs()));
  if (!mean) return Forward(mean);
  op.Set(0, op.Cast(*mean, dtype));
  return {};
}

Status LowerMod(Op& op, const Operator& /*row*/) {
  const bool fmod = op.Int("fmod", 0) != 0;
  Result<Value*> result = op.Binary(fmod ? names::kFmod : names::kMod, op.in(0), op.in(1));
  if (!result) return Forward(result);
  op.Set(0, *result);
  return {};
}

// The exponent may be of another type.
// Whether a constant is the same power in a float type that rounds its elements.
bool HoldsPowers(const std::vector<double>& exponents, bool whole) {
  constexpr double kExact = 1 << 11;  // all integers up to here are halves
  return std::all_of(exponents.begin(), exponents.end(), [&](double each) {
    return each == 0 || std::isnan(each) || (std::abs(each) <= kExact && (whole || std::abs(each) >= 1e-4));
  });
}

// The dtype of a power: the base's, unless the exponent has numbers that it does not hold.
DLDataType PowerType(const Value* base, const Value* exponent) {
  const DLDataType of = base->type.dtype, to = exponent->type.dtype;
  if (!IsFloat(of)) return IsFloat(to) || (to.code == of.code && to.bits > of.bits) ? to : of;
  if (to == of || (IsFloat(to) && to.bits < of.bits)) return of;
  if (const auto known = KnownFloats(exponent); known && HoldsPowers(*known, !IsFloat(to))) return of;
  // Neither f16 nor bf16 holds the other's numbers.
  if (IsFloat(to) && to.bits == of.bits) return kFloat32;
  return IsFloat(to) ? to : kFloat64;
}

Status LowerPow(Op& op, const Operator& row) {
  const Result<Value*> aligned = AlignedOperand(op);
  if (!aligned) return Forward(aligned);
  Value *base = op.in(0), *exponent = *aligned;
  const DLDataType type = PowerType(base, exponent);
  Result<Value*> power = op.Binary(row.kernel, op.Cast(base, type), op.Cast(exponent, type));
  if (!power) return Forward(power);
  op.Set(0, op.Cast(*power, base->type.dtype));
  return {};
}

// The largest finite number of a float dtype.
double LargestOf(DLDataType dtype) {
  if (dtype == kFloat64) return std::numeric_limits<double>::max();
  if (dtype == kFloat16) return 65504;
  return dtype == kBFloat16 ? 0x1.FEp127 : double{std::numeric_limits<float>::max()};
}

Attributes Bounds(std::optional<double> min, std::optional<double> max) {
  Attributes bounds;
  if (min) bounds.push_back({"min", *min});
  if (max) bounds.push_back({"max", *max});
  return bounds;
}

// A missing bound of floats is the last finite number, which an infinity becomes.
Status LowerClip(Op& op, const Operator& row) {
  Value* x = op.in(0);
  const bool is_float = IsFloat(x->type.dtype);
  const double last = is_float ? LargestOf(op.opset() < 11 ? kFloat32 : x->type.dtype) : 0;
  if (op.opset() < 11) {
    op.Set(0, op.Unary(row.kernel, x, Bounds(op.Float("min", -last), op.Float("max", last))));
    return {};
  }
  const auto low = KnownFloats(op.in(1)), high = KnownFloats(op.in(2));
  const bool constant = (op.in(1) == nullptr || low) && (op.in(2) == nullptr || high);
  if (constant) {
    std::optional<double> min, max;
    if (is_float) {
      min = -last;
      max = last;
    }
    if (low && low->size() == 1) min = (*low)[0];
    if (high && high->size() == 1) max = (*high)[0];
    op.Set(0, op.Unary(row.kernel, x, Bounds(min, max)));
    return {};
  }
  for (const int i : {1, 2}) {
    Value* limit = op.in(i);
    if (limit == nullptr && !is_float) continue;
    if (limit == nullptr) limit = op.Scalar(x->type.dtype, i == 1 ? -last : last);
    Result<Value*> bounded = op.Binary(i == 1 ? names::kAtLeast : names::kAtMost, x, limit);
    if (!bounded) return Forward(bounded);
    x = *bounded;
  }
  op.Set(0, x);
  return {};
}

// Lowers Where of inputs whose ranks are not all known.
Status LowerUnrankedWhere(Op& op, const Operator& row) {
  for (int i = 0; i < 3; ++i) {
    if (op.lowering().strings().Has(op.in(i))) return op.Unsupported("strings beside values of unknown rank");
  }
  Value* shape = op.ShapeOf(op.in(0));
  for (int i = 1; i < 3; ++i) {
    Value* other = op.ShapeOf(op.in(i));
    const DimExpr rank = DimExpr::Max(shape->type.dims[0], other->type.dims[0]);
    shape = op.Call(names::kShapeBroadcast, {shape, other}, {}, TensorOf(kInt64, {rank}));
  }
  Op::KernelCall call{
      row.kernel, {op.in(0), op.in(1), op.in(2)}, {}, {UnrankedTensorOf(op.in(1)->type.dtype)}, {shape}};
  op.Set(0, op.Call(std::move(call))[0]);
  return {};
}

Status LowerWhere(Op& op, const Operator& row) {
  for (int i = 0; i < 3; ++i) {
    if (!op.in(i)->type.ranked) return LowerUnrankedWhere(op, row);
  }
  Result<Shape> values = op.Broadcast(op.in(1)->type.dims, op.in(2)->type.dims);
  if (!values) return Forward(values);
  Result<Shape> dims = op.Broadcast(*values, op.in(0)->type.dims);
  if (!dims) return Forward(dims);
  const StringTables& strings = op.lowering().strings();
  if (strings.Has(op.in(1)) != strings.Has(op.in(2)) || strings.Has(op.in(0)))
    return op.Invalid("some inputs are strings, others are not");
  if (strings.Has(op.in(1))) {
    const JoinedTexts joined = JoinTexts(op, {op.in(1), op.in(2)});
    SetJoined(op, 0,
              op.Call(row.kernel, {op.in(0), joined.positions[0], joined.positions[1]}, {},
                      TensorOf(kInt64, *std::move(dims))),
              joined);
    return {};
  }
  Value* result = op.Call(row.kernel, {op.in(0), op.in(1), op.in(2)}, {},
                          TensorOf(op.in(1)->type.dtype, *std::move(dims)));
  PropagateWhere(op.in(0), op.in(1), op.in(2), result);
  op.Set(0, result);
  return {};
}

// The slope broadcasts to x from the right; before version 7 a slope of one dimension goes along x's axis 1.
Status LowerPRelu(Op& op, const Operator& row) {
  Value* x = op.in(0);
  Value* slope = op.in(1);
  if (op.opset() < 7 && (!x->type.ranked || !slope->type.ranked))
    return op.Unsupported("a slope that goes along an axis of a value of unknown rank");
  if (op.opset() < 7 && slope->type.rank() == 1 && x->type.rank() > 2) {
    Shape dims = slope->type.dims;
    dims.resize(static_cast<std::size_t>(x->type.rank() - 1), DimExpr(1));
    slope = op.Reshape(slope, std::move(dims));
  }
  op.Set(0, op.Apply(row.kernel, x, slope));
  return {};
}

// One side of the cast is strings, or both.
Status CastStrings(Op& op, bool of_strings, bool to_strings, DLDataType dtype) {
  Value* x = op.in(0);
  if (of_strings && to_strings) {
    op.Set(0, x);
    return {};
  }
  if (!x->type.ranked) return op.Unsupported("the rank of input 0, '{}', is not known", x->name);
  if (dtype.code == kComplex || (!of_strings && x->type.dtype.code == kComplex))
    return op.Unsupported("a cast between strings and complex numbers");
  if (of_strings) {
    op.Set(0,
           op.Call(names::kTextToNumber, TextTensorOf(op, x).arguments(), {}, TensorOf(dtype, x->type.dims)));
  } else {
    SetTexts(op, 0, NewTexts(op, names::kTextFromNumber, {x}, {}, x->type.dims));
  }
  return {};
}

Status LowerCast(Op& op, const Operator& row) {
  Result<DLDataType> dtype = op.in(0)->type.dtype;
  const bool is_like = std::string_view(row.type) == "CastLike";
  const bool of_strings = op.lowering().strings().Has(op.in(0));
  const bool to_strings =
      is_like ? op.lowering().strings().Has(op.in(1)) : op.Int("to", 0) == onnx::TensorProto::STRING;
  if (is_like) dtype = op.in(1)->type.dtype;
  if (!is_like && !to_strings) dtype = op.DTypeAttribute("to", kFloat32);
  if (!dtype) return Forward(dtype);
  if (of_strings || to_strings) return CastStrings(op, of_strings, to_strings, *dtype);
  const DLDataType from = op.in(0)->type.dtype;
  const bool narrow = IsNarrow(from) || IsNarrow(*dtype);
  if (narrow && (from.code == kComplex || dtype->code == kComplex))
    return op.Unsupported("{} does not become {}", DTypeName(from), DTypeName(*dtype));
  op.Set(0, op.Cast(op.in(0), *dtype,
                    {{"saturate", op.Int("saturate", 1)}, {"round_mode", op.String("round_mode", "up")}}));
  return {};
}

Status LowerBitShift(Op& op, const Operator& row) {
  Result<Shape> dims = op.Broadcast(op.in(0)->type.dims, op.in(1)->type.dims);
  if (!dims) return Forward(dims);
  op.Set(0, op.Call(row.kernel, {op.in(0), op.in(1)}, {{"direction", op.String("direction", "LEFT")}},
                    TensorOf(op.in(0)->type.dtype, *std::move(dims))));
  return {};
}

}  // namespace

std::span<const Operator> ElementwiseOperators() {
  static constexpr Operator kOperators[] = {
      {"Abs", 1, 0, 1, 1, "", LowerUnary, names::kAbs, kAnyRank | kKeepsRank},
      {"Acos", 7, 0, 1, 1, "", LowerUnary, names::kAcos, kAnyRank | kKeepsRank},
      {"Acosh", 9, 0, 1, 1, "", LowerUnary, names::kAcosh, kAnyRank | kKeepsRank},
      {"Add", 1, 0, 2, 2, "axis<7 broadcast<7", LowerBinary, names::kAdd, kAnyRank | kJoinsRanks},
      {"And", 1, 0, 2, 2, "axis<7 broadcast<7", LowerCompare, names::kAnd, kAnyRank},
      {"Asin", 7, 0, 1, 1, "", LowerUnary, names::kAsin, kAnyRank | kKeepsRank},
      {"Asinh", 9, 0, 1, 1, "", LowerUnary, names::kAsinh, kAnyRank | kKeepsRank},
      {"Atan", 7, 0, 1, 1, "", LowerUnary, names::kAtan, kAnyRank | kKeepsRank},
      {"Atanh", 9, 0, 1, 1, "", LowerUnary, names::kAtanh, kAnyRank | kKeepsRank},
      {"BitCast", 26, 0, 1, 1, "to", LowerBitCast, names::kBitCast},
      {"BitShift", 11, 0, 2, 2, "direction", LowerBitShift, names::kBitShift},
      {"BitwiseAnd", 18, 0, 2, 2, "", LowerBinary, names::kBitAnd, kAnyRank},
      {"BitwiseNot", 18, 0, 1, 1, "", LowerUnary, names::kBitNot, kAnyRank},
      {"BitwiseOr", 18, 0, 2, 2, "", LowerBinary, names::kBitOr, kAnyRank},
      {"BitwiseXor", 18, 0, 2, 2, "", LowerBinary, names::kBitXor, kAnyRank},
      {"Cast", 6, 0, 1, 1, "~round_mode ~saturate to", LowerCast, nullptr,
       kAnyRank | kTakesStrings | kKeepsRank},
      {"CastLike", 15, 0, 2, 2, "~round_mode ~saturate", LowerCast, nullptr,
       kAnyRank | kTakesStrings | kKeepsRank},
      {"Ceil", 1, 0, 1, 1, "", LowerUnary, names::kCeil, kAnyRank | kKeepsRank},
      {"Celu", 12, 0, 1, 1, "alpha", LowerAlpha<1, 1>, names::kCelu, kAnyRank | kKeepsRank},
      {"Clip", 6, 0, 1, 3, "max<11 min<11", LowerClip, names::kClip, kAnyRank | kKeepsRank},
      {"Cos", 7, 0, 1, 1, "", LowerUnary, names::kCos, kAnyRank | kKeepsRank},
      {"Cosh", 9, 0, 1, 1, "", LowerUnary, names::kCosh, kAnyRank | kKeepsRank},
      {"Div", 1, 0, 2, 2, "axis<7 broadcast<7", LowerBinary, names::kDiv, kAnyRank | kJoinsRanks},
      {"Elu", 6, 0, 1, 1, "alpha", LowerAlpha<1, 1>, names::kElu, kAnyRank | kKeepsRank},
      {"Equal", 1, 0, 2, 2, "axis<7 broadcast<7", LowerEqual, names::kEqual, kAnyRank | kTakesStrings},
      {"Erf", 9, 0, 1, 1, "", LowerUnary, names::kErf, kAnyRank | kKeepsRank},
      {"Exp", 1, 0, 1, 1, "", LowerUnary, names::kExp, kAnyRank | kKeepsRank},
      {"Floor", 1, 0, 1, 1, "", LowerUnary, names::kFloor, kAnyRank | kKeepsRank},
      {"Gelu", 20, 0, 1, 1, "approximate", LowerGelu, names::kGelu, kAnyRank | kKeepsRank},
      {"Greater", 1, 0, 2, 2, "axis<7 broadcast<7", LowerCompare, names::kGreater, kAnyRank},
      {"GreaterOrEqual", 12, 0, 2, 2, "", LowerCompare, names::kGreaterEqual, kAnyRank},
      {"HardSigmoid", 6, 0, 1, 1, "alpha beta", LowerHardSigmoid, names::kHardSigmoid, kAnyRank | kKeepsRank},
      {"HardSwish", 14, 0, 1, 1, "", LowerUnary, names::kHardSwish, kAnyRank | kKeepsRank},
      {"IsInf", 10, 0, 1, 1, "detect_negative detect_positive", LowerIsInf, names::kIsInf,
       kAnyRank | kKeepsRank},
      {"IsNaN", 9, 0, 1, 1, "", LowerUnaryBool, names::kIsNan, kAnyRank | kKeepsRank},
      {"LeakyRelu", 6, 0, 1, 1, "alpha", LowerAlpha<1, 100>, names::kLeakyRelu, kAnyRank | kKeepsRank},
      {"Less", 1, 0, 2, 2, "axis<7 broadcast<7", LowerCompare, names::kLess, kAnyRank},
      {"LessOrEqual", 12, 0, 2, 2, "", LowerCompare, names::kLessEqual, kAnyRank},
      {"Log", 1, 0, 1, 1, "", LowerUnary, names::kLog, kAnyRank | kKeepsRank},
      {"Max", 1, 0, 1, kAnyNumber, "", LowerVariadic, names::kMax, kAnyRank},
      {"Mean", 1, 0, 1, kAnyNumber, "", LowerMean, nullptr, kAnyRank},
      {"Min", 1, 0, 1, kAnyNumber, "", LowerVariadic, names::kMin, kAnyRank},
      {"Mish", 18, 0, 1, 1, "", LowerUnary, names::kMish, kAnyRank | kKeepsRank},
      {"Mod", 10, 0, 2, 2, "fmod", LowerMod, nullptr, kAnyRank},
      {"Mul", 1, 0, 2, 2, "axis<7 broadcast<7", LowerBinary, names::kMul, kAnyRank | kJoinsRanks},
      {"Neg", 1, 0, 1, 1, "", LowerNeg, names::kNeg, kAnyRank | kKeepsRank},
      {"Not", 1, 0, 1, 1, "", LowerUnary, names::kNot, kAnyRank | kKeepsRank},
      {"Or", 1, 0, 2, 2, "axis<7 broadcast<7", LowerCompare, names::kOr, kAnyRank},
      {"PRelu", 6, 0, 2, 2, "", LowerPRelu, names::kPRelu, kAnyRank},
      {"Pow", 1, 0, 2, 2, "axis<7 broadcast<7", LowerPow, names::kPow, kAnyRank | kJoinsRanks},
      {"Reciprocal", 1, 0, 1, 1, "", LowerUnary, names::kReciprocal, kAnyRank | kKeepsRank},
      {"Relu", 1, 0, 1, 1, "", LowerUnary, names::kRelu, kAnyRank | kKeepsRank},
      {"Round", 11, 0, 1, 1, "", LowerUnary, names::kRound, kAnyRank | kKeepsRank},
      {"Selu", 6, 0, 1, 1, "alpha gamma", LowerSelu, names::kSelu, kAnyRank | kKeepsRank},
      {"Shrink", 9, 0, 1, 1, "bias lambd", LowerShrink, names::kShrink, kAnyRank | kKeepsRank},
      {"Sigmoid", 1, 0, 1, 1, "", LowerUnary, names::kSigmoid, kAnyRank | kKeepsRank},
      {"Sign", 9, 0, 1, 1, "", LowerUnary, names::kSign, kAnyRank | kKeepsRank},
      {"Sin", 7, 0, 1, 1, "", LowerUnary, names::kSin, kAnyRank | kKeepsRank},
      {"Sinh", 9, 0, 1, 1, "", LowerUnary, names::kSinh, kAnyRank | kKeepsRank},
      {"Softplus", 1, 0, 1, 1, "", LowerUnary, names::kSoftplus, kAnyRank | kKeepsRank},
      {"Softsign", 1, 0, 1, 1, "", LowerUnary, names::kSoftsign, kAnyRank | kKeepsRank},
      {"Sqrt", 1, 0, 1, 1, "", LowerUnary, names::kSqrt, kAnyRank | kKeepsRank},
      {"Sub", 1, 0, 2, 2, "axis<7 broadcast<7", LowerBinary, names::kSub, kAnyRank | kJoinsRanks},
      {"Sum", 1, 0, 1, kAnyNumber, "", LowerVariadic, names::kAdd, kAnyRank},
      {"SwiGLU", 28, 0, 2, 2, "alpha", LowerSwiGlu},
      {"Swish", 24, 0, 1, 1, "alpha", LowerSwish, nullptr, kAnyRank | kKeepsRank},
      {"Tan", 7, 0, 1, 1, "", LowerUnary, names::kTan, kAnyRank | kKeepsRank},
      {"Tanh", 1, 0, 1, 1, "", LowerUnary, names::kTanh, kAnyRank | kKeepsRank},
      {"ThresholdedRelu", 1, 0, 1, 1, "alpha", LowerAlpha<1, 1>, names::kThresholdedRelu,
       kAnyRank | kKeepsRank},
      {"Where", 9, 0, 3, 3, "", LowerWhere, names::kWhere, kAnyRank | kTakesStrings},
      {"Xor", 1, 0, 2, 2, "axis<7 broadcast<7", LowerCompare, names::kXor, kAnyRank},
  };
  return kOperators;
}

}  // namespace rewire::compiler
