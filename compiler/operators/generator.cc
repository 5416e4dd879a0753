// SPDX-License-Identifier: Apache-2.0
// Operators that make tensors: ranges, identities, windows.
#include <bit>
#include <numbers>

#include "rewire/compiler/lower/registry.h"
#include "rewire/kernels/contract/elementwise.h"
#include "rewire/kernels/contract/generator.h"
#include "rewire/kernels/contract/shape.h"

namespace rewire::compiler {
namespace {

Status LowerRange(Op& op, const Operator& row) {
  const std::vector<Value*> inputs = op.Arguments(0, 2);
  const std::optional<Shape> start = KnownElements(inputs[0]), limit = KnownElements(inputs[1]),
                             delta = KnownElements(inputs[2]);
  if (start && limit && delta && (*delta)[0].IsConstant() && !(*delta)[0].Is(0)) {
    const DimExpr count = DimExpr::CeilDiv((*limit)[0] - (*start)[0], (*delta)[0]);
    op.Set(0, op.Call(row.kernel, inputs, {}, TensorOf(op.in(0)->type.dtype, {DimExpr::Max(count, 0)})));
    return {};
  }
  op.Set(0, op.CallShaped(row.kernel, inputs, {}, op.in(0)->type.dtype, Op::AllOpen(1),
                          {names::kShapeArange, inputs, {}}));
  return {};
}

Status LowerEyeLike(Op& op, const Operator& row) {
  Result<DLDataType> dtype = op.DTypeAttribute("dtype", op.in(0)->type.dtype);
  if (!dtype) return Forward(dtype);
  if (op.in(0)->type.rank() != 2) return op.Invalid("input {} is no matrix", ShapeText(op.in(0)->type.dims));
  op.Set(0, op.Call(row.kernel, {}, {{"k", op.Int("k", 0)}}, TensorOf(*dtype, op.in(0)->type.dims)));
  return {};
}

// a0 - a1 cos(2 pi n / N) + a2 cos(4 pi n / N) for n below the size; N is the size, or one less for a
// symmetric window.
Status LowerWindow(Op& op, const Operator& row) {
  Result<DLDataType> dtype = op.DTypeAttribute("output_datatype", kFloat32);
  if (!dtype) return Forward(dtype);
  const std::string type = op.type();
  double a0 = 0.5, a1 = 0.5, a2 = 0;
  if (type == "HammingWindow") {
    a0 = 25.0 / 46.0;
    a1 = 1 - a0;
  } else if (type == "BlackmanWindow") {
    a0 = 0.42;
    a2 = 0.08;
  }
  Value* size = op.Cast(op.Reshape(op.in(0), {}), kInt64);
  const std::vector<Value*> bounds = {op.IntValue(0), size, op.IntValue(1)};
  Value* n = op.CallShaped(row.kernel, bounds, {}, kInt64, Op::AllOpen(1), {names::kShapeArange, bounds, {}});
  Value* period = op.Int("periodic", 1) != 0 ? size : op.Apply(names::kSub, size, op.IntValue(1));
  Value* turns = op.Apply(names::kDiv, op.Cast(n, kFloat64), op.Cast(period, kFloat64));
  const auto wave = [&](double turn, double amplitude) {
    Value* angle = op.Apply(names::kMul, turns, op.Scalar(kFloat64, turn * std::numbers::pi));
    return op.Apply(names::kMul, op.Unary(names::kCos, angle), op.Scalar(kFloat64, amplitude));
  };
  // The sum of the even terms first: where a window ends, it is a1, so that the end is 0 and not a rounding.
  Value* even = op.Scalar(kFloat64, a0);
  if (a2 != 0) even = op.Apply(names::kAdd, wave(4, a2), even);
  op.Set(0, op.Cast(op.Apply(names::kAdd, wave(2, -a1), even), *dtype));
  return {};
}

// Random numbers of the shape of an attribute, or of the input's.
Status LowerRandom(Op& op, const Operator& row) {
  Value* like = op.in(0);
  Result<DLDataType> dtype = op.DTypeAttribute("dtype", like != nullptr ? like->type.dtype : kFloat32);
  if (!dtype) return Forward(dtype);
  Attributes attributes;
  for (const char* name : {"low", "high", "mean", "scale"}) {
    if (op.HasAttribute(name)) attributes.push_back({name, op.Float(name, 0)});
  }
  // ONNX's seed is a float, of any value; its bits keep 0.25 and 0.5 apart and take infinity.
  if (op.HasAttribute("seed")) {
    attributes.push_back({"seed", std::bit_cast<std::int64_t>(op.Float("seed", 0))});
  }
  const bool reads = std::string(row.kernel) == names::kBernoulli;
  Shape dims = like != nullptr ? like->type.dims : ShapeOfInts(op.IntList("shape"));
  op.Set(0, op.Call(row.kernel, reads ? std::vector<Value*>{like} : std::vector<Value*>(),
                    std::move(attributes), TensorOf(*dtype, std::move(dims))));
  return {};
}

}  // namespace

std::span<const Operator> GeneratorOperators() {
  static constexpr Operator kOperators[] = {
      {"Bernoulli", 15, 0, 1, 1, "dtype seed", LowerRandom, names::kBernoulli},
      {"BlackmanWindow", 17, 0, 1, 1, "output_datatype periodic", LowerWindow, names::kArange},
      {"EyeLike", 9, 0, 1, 1, "dtype k", LowerEyeLike, names::kEye},
      {"HammingWindow", 17, 0, 1, 1, "output_datatype periodic", LowerWindow, names::kArange},
      {"HannWindow", 17, 0, 1, 1, "output_datatype periodic", LowerWindow, names::kArange},
      {"RandomNormal", 1, 0, 0, 0, "dtype mean scale seed shape", LowerRandom, names::kRandomNormal},
      {"RandomNormalLike", 1, 0, 1, 1, "dtype mean scale seed", LowerRandom, names::kRandomNormal},
      {"RandomUniform", 1, 0, 0, 0, "dtype high low seed shape", LowerRandom, names::kRandomUniform},
      {"RandomUniformLike", 1, 0, 1, 1, "dtype high low seed", LowerRandom, names::kRandomUniform},
      {"Range", 11, 0, 3, 3, "~stash_type", LowerRange, names::kArange},
  };
  return kOperators;
}

}  // namespace rewire::compiler
