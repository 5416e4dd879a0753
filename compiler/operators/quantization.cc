// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "rewire/compiler/ir/call_arguments.h"
#include "rewire/compiler/lower/registry.h"
#include "rewire/kernels/contract/quantization.h"

namespace rewire::compiler {
namespace {

// The kernel's attributes. A scale of one element needs no axis. Scales of blocks have the shape of x, but
// with one element for each block along the axis.
Result<Attributes> QuantizedAxis(const Op& op) {
  if (!op.in(0)->type.ranked && !(op.in(1)->type.ranked && op.in(1)->type.dims.empty()))
    return op.Unsupported("the rank of input 0, '{}', is not known, and its scale is no scalar",
                          op.in(0)->name);
  const Shape& scale = op.in(1)->type.dims;
  const std::int64_t given = op.Int("axis", 1), block_size = op.Int("block_size", 0);
  if (block_size < 0) return op.Invalid("block_size is {}, expected a positive number", block_size);
  if (block_size == 0 && scale.size() > 1) {
    return op.Invalid("scales {} are those of blocks, and block_size is missing", ShapeText(scale));
  }
  if (block_size == 0 && scale.empty()) return Attributes();
  // The default axis is 1 also for a vector, whose scale has one element. From the back, axes of x alone
  // count.
  const int rank = op.in(0)->type.rank();
  Result<int> axis = op.Axis(given, block_size != 0 ? rank : std::max(rank, given < 0 ? 1 : 2));
  if (!axis) return Forward(axis);
  Attributes attributes = {{"axis", std::int64_t{*axis}}};
  if (block_size == 0) return attributes;
  if (scale.size() != op.in(0)->type.dims.size()) {
    return op.Invalid("scales of blocks have shape {}, expected one of rank {}, as x has", ShapeText(scale),
                      op.in(0)->type.rank());
  }
  attributes.push_back({"block_size", block_size});
  return attributes;
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

// A constant of 2- or 4-bit integers as one of 8 bits, with the same elements. Each has a byte of its own.
Value* AsBytes(Op& op, Value* value) {
  const DLDataType dtype = value->type.dtype;
  if (dtype.bits >= 8 || (dtype.code != kInt && dtype.code != kUInt)) return value;
  const HostTensor* elements = ElementsOf(value);
  if (elements == nullptr) return value;
  HostTensor bytes = *elements;
  bytes.dtype = MakeDType(dtype.code == kInt ? kInt : kUInt, 8);
  return op.Constant(std::move(bytes));
}

// The attribute output_dtype; 0 stands for what it is without.
Result<DLDataType> OutputDType(const Op& op, DLDataType otherwise) {
  return op.Int("output_dtype", 0) == 0 ? otherwise : op.DTypeAttribute("output_dtype", otherwise);
}

// Calls a kernel whose output has the shape of x, its first argument.
Value* CallLikeX(Op& op, const Operator& row, std::vector<Value*> arguments, Attributes attributes,
                 DLDataType dtype) {
  Type type = arguments[0]->type;
  type.dtype = dtype;
  Op::KernelCall call;
  call.kernel = row.kernel;
  if (!type.ranked) call.shapes.push_back(op.ShapeOf(arguments[0]));
  call.inputs = std::move(arguments);
  call.attributes = std::move(attributes);
  call.outputs.push_back(std::move(type));
  return op.Call(std::move(call))[0];
}

// Passes know these operators by floats of 32 bits. fuse-elementwise makes those of 16 bits of them where
// nothing else came of them.
Status LowerQuantizeLinear(Op& op, const Operator& row) {
  Result<Attributes> attributes = QuantizedAxis(op);
  if (!attributes) return Forward(attributes);
  const DLDataType of_zero = op.in(2) != nullptr ? op.in(2)->type.dtype : kUInt8;
  const Result<DLDataType> dtype = OutputDType(op, of_zero);
  if (!dtype) return Forward(dtype);
  if (op.in(2) != nullptr && *dtype != of_zero) {
    return op.Invalid("output_dtype is {}, the zero point is {}", DTypeName(*dtype), DTypeName(of_zero));
  }
  if (IsNarrow(*dtype) && op.Int("saturate", 1) == 0) attributes->push_back({"saturate", std::int64_t{0}});
  std::vector<Value*> arguments = QuantizedArguments(op);
  if (arguments[0]->type.dtype == kFloat16) arguments[0] = op.Cast(arguments[0], kFloat32);
  op.Set(0, CallLikeX(op, row, std::move(arguments), *std::move(attributes), *dtype));
  return {};
}

Status LowerDequantizeLinear(Op& op, const Operator& row) {
  Result<Attributes> attributes = QuantizedAxis(op);
  if (!attributes) return Forward(attributes);
  const Result<DLDataType> dtype = OutputDType(op, op.in(1)->type.dtype);
  if (!dtype) return Forward(dtype);
  std::vector<Value*> arguments = QuantizedArguments(op);
  // x and its zero have one type.
  if (arguments[0]->IsConstant() && (arguments.size() < 3 || arguments[2]->IsConstant())) {
    for (Value*& argument : arguments) argument = AsBytes(op, argument);
  }
  const DLDataType computed = *dtype == kFloat16 ? kFloat32 : *dtype;
  op.Set(0, op.Cast(CallLikeX(op, row, std::move(arguments), *std::move(attributes), computed), *dtype));
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
      {"DequantizeLinear", 10, 0, 2, 3, "axis block_size output_dtype", LowerDequantizeLinear,
       names::kDequantizeLinear, kAnyRank | kKeepsRank},
      {"DynamicQuantizeLinear", 11, 0, 1, 1, "", LowerDynamicQuantizeLinear, names::kDynamicQuantizeLinear},
      {"QuantizeLinear", 10, 0, 2, 3, "axis block_size output_dtype precision=0 ~saturate",
       LowerQuantizeLinear, names::kQuantizeLinear, kAnyRank | kKeepsRank},
  };
  return kOperators;
}

}  // namespace rewire::compiler
