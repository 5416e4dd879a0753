// SPDX-License-Identifier: Apache-2.0
// Operators that make tensors: ranges, identities, windows.
#include <bit>
#include <numbers>

#include "rewire/compiler/lower/registry.h"

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
                          {"rewire.shape.arange", inputs, {}}));
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
  Value* n =
      op.CallShaped(row.kernel, bounds, {}, kInt64, Op::AllOpen(1), {"rewire.shape.arange", bounds, {}});
  Value* period = op.Int("periodic", 1) != 0 ? size : op.Apply("rewire.sub", size, op.IntValue(1));
  Value* turns = op.Apply("rewire.div", op.Cast(n, kFloat64), op.Cast(period, kFloat64));
  const auto wave = [&](double turn, double amplitude) {
    Value* angle = op.Apply("rewire.mul", turns, op.Scalar(kFloat64, turn * std::numbers::pi));
    return op.Apply("rewire.mul", op.Unary("rewire.cos", angle), op.Scalar(kFloat64, amplitude));
  };
  Value* window = op.Apply("rewire.add", wave(2, -a1), op.Scalar(kFloat64, a0));
  if (a2 != 0) window = op.Apply("rewire.add", window, wave(4, a2));
  op.Set(0, op.Cast(window, *dtype));
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
  const bool reads = std::string(row.kernel) == "rewire.bernoulli";
  Shape dims = like != nullptr ? like->type.dims : ShapeOfInts(op.IntList("shape"));
  op.Set(0, op.Call(row.kernel, reads ? std::vector<Value*>{like} : std::vector<Value*>(),
                    std::move(attributes), TensorOf(*dtype, std::move(dims))));
  return {};
}

}  // namespace

std::span<const Operator> GeneratorOperators() {
  static constexpr Operator kOperators[] = {
      {"Bernoulli", 15, 0, 1, 1, "dtype seed", LowerRandom, "rewire.bernoulli"},
      {"BlackmanWindow", 17, 0, 1, 1, "output_datatype periodic", LowerWindow, "rewire.arange"},
      {"EyeLike", 9, 0, 1, 1, "dtype k", LowerEyeLike, "rewire.eye"},
      {"HammingWindow", 17, 0, 1, 1, "output_datatype periodic", LowerWindow, "rewire.arange"},
      {"HannWindow", 17, 0, 1, 1, "output_datatype periodic", LowerWindow, "rewire.arange"},
      {"RandomNormal", 1, 0, 0, 0, "dtype mean scale seed shape", LowerRandom, "rewire.random_normal"},
      {"RandomNormalLike", 1, 0, 1, 1, "dtype mean scale seed", LowerRandom, "rewire.random_normal"},
      {"RandomUniform", 1, 0, 0, 0, "dtype high low seed shape", LowerRandom, "rewire.random_uniform"},
      {"RandomUniformLike", 1, 0, 1, 1, "dtype high low seed", LowerRandom, "rewire.random_uniform"},
      {"Range", 11, 0, 3, 3, "~stash_type", LowerRange, "rewire.arange"},
  };
  return kOperators;
}

}  // namespace rewire::compiler
