// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "rewire/compiler/operators/registry.h"

namespace rewire::compiler {
namespace {

// A scale of one element needs no axis.
Result<Attributes> QuantizedAxis(const Op& op) {
  if (op.in(1)->type.rank() > 1) {
    return op.Unsupported(
        "scales {} are those of blocks, expected one scale or one for each position of an axis",
        ShapeText(op.in(1)->type.dims));
  }
  const std::int64_t given = op.Int("axis", 1);
  if (op.in(1)->type.rank() == 0) return Attributes();
  Result<int> axis = op.Axis(given, std::max(op.in(0)->type.rank(), 2));
  if (!axis) return Forward(axis);
  return Attributes{{"axis", std::int64_t{*axis}}};
}

// x, scale and zero. Where both are one element, the zero takes the scale's shape: [] and [1] mean the same.
std::vector<Value*> QuantizedArguments(Op& op) {
  std::vector<Value*> arguments = op.Arguments(0, 2);
  if (arguments.size() < 3) return arguments;
  const Shape& scale = arguments[1]->type.dims;
  if (ProductOf(scale).Is(1) && ProductOf(arguments[2]->type.dims).Is(1)) {
    arguments[2] = op.Reshape(arguments[2], scale);
  }
  return arguments;
}

// The attribute output_dtype; 0 stands for what it is without.
Result<DLDataType> OutputDType(const Op& op, DLDataType otherwise) {
  return op.Int("output_dtype", 0) == 0 ? otherwise : op.DTypeAttribute("output_dtype", otherwise);
}

Status LowerQuantizeLinear(Op& op, const Operator& row) {
  Result<Attributes> attributes = QuantizedAxis(op);
  if (!attributes) return Forward(attributes);
  const DLDataType of_zero = op.in(2) != nullptr ? op.in(2)->type.dtype : kUInt8;
  const Result<DLDataType> dtype = OutputDType(op, of_zero);
  if (!dtype) return Forward(dtype);
  if (op.in(2) != nullptr && *dtype != of_zero) {
    return op.Invalid("output_dtype is {}, the zero point is {}", DTypeName(*dtype), DTypeName(of_zero));
  }
  op.Set(0, op.Call(row.kernel, QuantizedArguments(op), *attributes, TensorOf(*dtype, op.in(0)->type.dims)));
  return {};
}

Status LowerDequantizeLinear(Op& op, const Operator& row) {
  Result<Attributes> attributes = QuantizedAxis(op);
  if (!attributes) return Forward(attributes);
  const Result<DLDataType> dtype = OutputDType(op, op.in(1)->type.dtype);
  if (!dtype) return Forward(dtype);
  op.Set(0, op.Call(row.kernel, QuantizedArguments(op), *attributes, TensorOf(*dtype, op.in(0)->type.dims)));
  return {};
}

Status LowerDynamicQuantizeLinear(Op& op, const Operator& row) {
  Op::KernelCall call;
  call.kernel = row.kernel;
  call.inputs = {op.in(0)};
  call.outputs = {TensorOf(kUInt8, op.in(0)->type.dims), TensorOf(kFloat32, {}), TensorOf(kUInt8, {})};
  const std::vector<Value*> outputs = op.Call(std::move(call));
  for (int i = 0; i < 3; ++i) op.Set(i, outputs[static_cast<std::size_t>(i)]);
  return {};
}

}  // namespace

std::span<const Operator> QuantizationOperators() {
  static constexpr Operator kOperators[] = {
      {"DequantizeLinear", 10, 0, 2, 3, "axis block_size=0 output_dtype", LowerDequantizeLinear,
       "rewire.dequantize_linear"},
      {"DynamicQuantizeLinear", 11, 0, 1, 1, "", LowerDynamicQuantizeLinear,
       "rewire.dynamic_quantize_linear"},
      {"QuantizeLinear", 10, 0, 2, 3, "axis block_size=0 output_dtype precision=0 ~saturate",
       LowerQuantizeLinear, "rewire.quantize_linear"},
  };
  return kOperators;
}

}  // namespace rewire::compiler
