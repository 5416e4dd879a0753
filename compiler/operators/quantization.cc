// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "compiler/operators/registry.h"

namespace rewire::compiler {
namespace {

// A scale of one element needs no axis.
Result<Attributes> QuantizedAxis(const Op& op) {
  if (op.in(1)->type.rank() == 0) return Attributes();
  Result<int> axis = op.Axis(op.Int("axis", 1), std::max(op.in(0)->type.rank(), 2));
  if (!axis) return Forward(axis);
  return Attributes{{"axis", std::int64_t{*axis}}};
}

Status LowerQuantizeLinear(Op& op, const Operator& row) {
  Result<Attributes> attributes = QuantizedAxis(op);
  if (!attributes) return Forward(attributes);
  const DLDataType dtype = op.in(2) != nullptr ? op.in(2)->type.dtype : kUInt8;
  op.Set(0, op.Call(row.kernel, op.Arguments(0, 2), *attributes, TensorOf(dtype, op.in(0)->type.dims)));
  return {};
}

Status LowerDequantizeLinear(Op& op, const Operator& row) {
  Result<Attributes> attributes = QuantizedAxis(op);
  if (!attributes) return Forward(attributes);
  op.Set(0, op.Call(row.kernel, op.Arguments(0, 2), *attributes,
                    TensorOf(op.in(1)->type.dtype, op.in(0)->type.dims)));
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
      {"DequantizeLinear", 10, 0, 2, 3, LowerDequantizeLinear, "rewire.dequantize_linear"},
      {"DynamicQuantizeLinear", 11, 0, 1, 1, LowerDynamicQuantizeLinear, "rewire.dynamic_quantize_linear"},
      {"QuantizeLinear", 10, 0, 2, 3, LowerQuantizeLinear, "rewire.quantize_linear"},
  };
  return kOperators;
}

}  // namespace rewire::compiler
