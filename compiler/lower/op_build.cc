// SPDX-License-Identifier: Apache-2.0
//
// The part of Op that makes nodes.
#include <cstring>
#include <limits>
#include <utility>

#include "rewire/compiler/ir/call_arguments.h"
#include "rewire/compiler/ir/dim_length.h"
#include "rewire/compiler/ir/kernel_traits.h"
#include "rewire/compiler/lower/call_casts.h"
#include "rewire/compiler/lower/op.h"
#include "rewire/kernels/contract/elementwise.h"
#include "rewire/kernels/contract/movement.h"
#include "rewire/kernels/contract/movement_attributes.h"
#include "rewire/kernels/contract/reduction_attributes.h"
#include "rewire/kernels/contract/shape.h"

namespace rewire::compiler {
namespace {

template <typename T>
HostTensor TensorOfElements(DLDataType dtype, Ints dims, const std::vector<T>& elements) {
  HostTensor tensor;
  tensor.dtype = dtype;
  tensor.shape = std::move(dims);
  tensor.bytes =
      CopyBytes({reinterpret_cast<const std::byte*>(elements.data()), elements.size() * sizeof(T)});
  return tensor;
}

// A number without its fraction, held within what 64 bits hold with a sign or without. A conversion of what
// does not fit is undefined. A number that is not above -2^63, or is none, becomes -2^63.
std::uint64_t IntegerOf(double value) {
  if (!(value > -0x1p63)) return std::uint64_t{1} << 63;
  if (value < 0) return static_cast<std::uint64_t>(static_cast<std::int64_t>(value));
  return value < 0x1p64 ? static_cast<std::uint64_t>(value) : std::numeric_limits<std::uint64_t>::max();
}

template <typename T>
HostTensor ScalarOf(DLDataType dtype, double value) {
  return TensorOfElements<T>(dtype, {}, {static_cast<T>(value)});
}

}  // namespace

std::vector<Value*> Op::Call(KernelCall call) {
  const KernelTraits* kernels = lowering_.graph().kernels.get();
  const RewireKernelRow* row = kernels == nullptr ? nullptr : kernels->Row(call.kernel);
  std::optional<CallDTypes> dtypes;
  if (row != nullptr) dtypes = CastsForCall(*row, call.inputs, call.outputs, call.returns);
  if (!dtypes) return MakeCall(std::move(call));
  for (std::size_t i = 0; i < call.inputs.size(); ++i) {
    Value*& input = call.inputs[i];
    if (input != nullptr && input->type.IsTensor()) input = AddedCast(input, dtypes->inputs[i]);
  }
  for (std::size_t i = 0; i < call.outputs.size(); ++i) {
    if (call.outputs[i].IsTensor()) std::swap(call.outputs[i].dtype, dtypes->outputs[i]);
  }
  std::vector<Value*> outputs = MakeCall(std::move(call));
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i]->type.IsTensor()) outputs[i] = AddedCast(outputs[i], dtypes->outputs[i]);
  }
  return outputs;
}

Value* Op::AddedCast(Value* x, DLDataType dtype) {
  Value* value = Cast(x, dtype);
  if (value != x && value->producer != nullptr) value->producer->added = true;
  return value;
}

std::vector<Value*> Op::MakeCall(KernelCall call) {
  Graph& graph = lowering_.graph();
  Node* node = graph.NewNode(NodeKind::kKernel);
  node->kernel = std::move(call.kernel);
  node->attributes = std::move(call.attributes);
  node->inputs = std::move(call.inputs);
  node->returns = call.returns;
  if (call.objects) node->flags |= kKernelObjects;
  for (std::size_t i = 0; i < call.outputs.size(); ++i) {
    CheckDims(call.outputs[i]);
    Value* output = graph.NewValue(NextName(), call.outputs[i]);
    if (!call.returns) {
      Node::Extent extent;
      extent.dims = output->type.dims;
      if (i < call.shapes.size()) extent.shape = call.shapes[i];
      node->extents.push_back(std::move(extent));
      output->type.dims = graph.OwnDims(output, output->type.dims, lowering_.block());
    }
    node->outputs.push_back(output);
  }
  const auto& check = lowering_.options().check;
  if (failure_ && check) failure_ = check(*node);
  lowering_.Append(node);
  for (Value* output : node->outputs) lowering_.Define(output);
  return node->outputs;
}

Value* Op::Call(const std::string& kernel, std::vector<Value*> inputs, Attributes attributes, Type output) {
  KernelCall call;
  call.kernel = kernel;
  call.inputs = std::move(inputs);
  call.attributes = std::move(attributes);
  call.outputs.push_back(std::move(output));
  return Call(std::move(call))[0];
}

Value* Op::CallSized(const std::string& kernel, std::vector<Value*> inputs, Attributes attributes,
                     DLDataType dtype, Value* shape, const OpenShape& known) {
  if (const std::optional<Shape> dims = KnownElements(shape)) {
    return Call(kernel, std::move(inputs), std::move(attributes), TensorOf(dtype, *dims));
  }
  KernelCall call;
  call.kernel = kernel;
  call.inputs = std::move(inputs);
  call.attributes = std::move(attributes);
  call.shapes.push_back(shape);
  Type type = UnrankedTensorOf(dtype);
  if (const Result<std::int64_t> rank = Length(shape, "its shape")) {
    type.ranked = true;
    for (std::size_t i = 0; std::cmp_less(i, *rank); ++i) {
      const bool open = i >= known.size() || !known[i];
      type.dims.push_back(open ? DimExpr::Symbol(lowering_.graph().FreshSymbol("")) : *known[i]);
    }
  }
  call.outputs.push_back(std::move(type));
  return Call(std::move(call))[0];
}

Op::OpenShape Op::Open(const Shape& dims, const Ints& axes) {
  OpenShape known(dims.begin(), dims.end());
  for (const std::int64_t axis : axes) {
    const std::int64_t at = axis < 0 ? axis + static_cast<std::int64_t>(dims.size()) : axis;
    if (at >= 0 && std::cmp_less(at, dims.size())) known[static_cast<std::size_t>(at)].reset();
  }
  return known;
}

Result<std::int64_t> Op::Length(const Value* list, const char* what) const {
  const bool flat = list->type.ranked && list->type.rank() <= 1;
  const std::optional<std::int64_t> length = flat ? ProductOf(list->type.dims).constant() : std::nullopt;
  if (!length) return Unsupported("the length of {} is not known", what);
  if (*length > static_cast<std::int64_t>(kMaxRank)) {
    return Invalid("{} has {} elements, a tensor has at most {} dimensions", what, *length, kMaxRank);
  }
  return *length;
}

Value* Op::IntsValue(const Ints& values) {
  return Constant(TensorOfElements(kInt64, {static_cast<std::int64_t>(values.size())}, values));
}

Value* Op::IntValue(std::int64_t value) {
  return Constant(TensorOfElements<std::int64_t>(kInt64, {}, {value}));
}

Value* Op::Scalar(DLDataType dtype, double value) {
  if (dtype == kFloat32) return Constant(ScalarOf<float>(dtype, value));
  if (dtype == kFloat64) return Constant(ScalarOf<double>(dtype, value));
  if (dtype.code == kFloat || dtype.code == kBFloat) return Cast(Scalar(kFloat32, value), dtype);
  // The low bytes of an integer of 64 bits are the same number in any narrower type that holds it.
  const std::uint64_t integer = IntegerOf(value);
  HostTensor tensor;
  tensor.dtype = dtype;
  tensor.bytes = CopyBytes({reinterpret_cast<const std::byte*>(&integer), ElementBytes(dtype)});
  return Constant(std::move(tensor));
}

Value* Op::DimsValue(const Shape& dims) {
  if (const auto known = ConstantDims(dims)) return IntsValue(*known);
  Graph& graph = lowering_.graph();
  Node* node = graph.NewNode(NodeKind::kDims);
  Value* output = graph.NewValue(NextName(), TensorOf(kInt64, {static_cast<std::int64_t>(dims.size())}));
  CheckLengths(dims);
  SetElements(output, dims);
  node->extents.push_back({dims, nullptr});
  node->outputs.push_back(output);
  lowering_.Append(node);
  return output;
}

void Op::CheckDims(const Type& type) {
  if (!failure_) return;
  if (type.dims.size() > kMaxRank) {
    failure_ = Unsupported("its output has {} dimensions, the limit is {}", type.dims.size(), kMaxRank);
  }
  CheckLengths(type.dims);
  for (const DimExpr& dim : type.dims) {
    if (dim.IsConstant() && *dim.constant() < 0) {
      failure_ = Invalid("its output comes out with shape {}", ShapeText(type.dims));
    }
  }
}

void Op::CheckLengths(const Shape& dims) {
  lowering_.ChargeDims(dims);
  if (!failure_ || !IsTooLong(dims)) return;
  failure_ = Unsupported("a dimension is an expression of more than {} bytes; fix dimensions with --dim",
                         kMostDimText);
}

Value* Op::ShapeOf(Value* x) {
  if (x->type.ranked) return DimsValue(x->type.dims);
  Graph& graph = lowering_.graph();
  Node* node = graph.NewNode(NodeKind::kShapeOf);
  node->inputs.push_back(x);
  node->outputs.push_back(
      graph.NewValue(NextName(), TensorOf(kInt64, {DimExpr::Symbol(graph.FreshSymbol("rank"))})));
  lowering_.Append(node);
  lowering_.Define(node->outputs[0]);
  return node->outputs[0];
}

Value* Op::Reshape(Value* x, Shape dims) {
  if (x->type.ranked && ShapeText(x->type.dims) == ShapeText(dims)) return x;
  // Sizes that do not fit are left to the run, which may never come to them.
  const auto known = ConstantDims(dims);
  const auto fits = [&](DLDataType dtype, std::size_t bytes) {
    const Result<std::uint64_t> wanted = CompactBytes(dtype, *known);
    return wanted && *wanted == bytes;
  };
  if (known && x->constant && fits(x->constant->dtype, x->constant->bytes.view.size())) {
    return lowering_.graph().NewView(NextName(), x, *known);
  }
  Graph& graph = lowering_.graph();
  Node* node = graph.NewNode(NodeKind::kReshape);
  node->inputs.push_back(x);
  Value* output = graph.NewValue(NextName(), TensorOf(x->type.dtype, dims));
  CheckDims(output->type);
  output->type.dims = graph.OwnDims(output, dims, lowering_.block());
  if (x->elements && known && dims.size() <= 1 && fits(kInt64, 8 * x->elements->size())) {
    output->elements = x->elements;
  }
  node->extents.push_back({std::move(dims), nullptr});
  node->outputs.push_back(output);
  lowering_.Append(node);
  lowering_.Define(output);
  return output;
}

Value* Op::ReshapeTo(Value* x, Value* shape, int rank) {
  if (const std::optional<Shape> dims = KnownElements(shape)) return Reshape(x, *dims);
  Graph& graph = lowering_.graph();
  Node* node = graph.NewNode(NodeKind::kReshape);
  node->inputs = {x, shape};
  node->outputs.push_back(graph.NewValue(NextName(), TensorOf(x->type.dtype, {})));
  node->extents.push_back({{}, shape});
  graph.DefineDims(node->outputs[0], rank);
  lowering_.Append(node);
  return node->outputs[0];
}

Value* Op::ReshapeUnranked(Value* x, Value* shape) {
  Graph& graph = lowering_.graph();
  Node* node = graph.NewNode(NodeKind::kReshape);
  node->inputs = {x, shape};
  node->outputs.push_back(graph.NewValue(NextName(), UnrankedTensorOf(x->type.dtype)));
  node->extents.push_back({{}, shape});
  lowering_.Append(node);
  return node->outputs[0];
}

Value* Op::WithoutIntegers(Value* x) { return IsFloat(x->type.dtype) ? x : Cast(x, kFloat64); }

Value* Op::Cast(Value* x, DLDataType dtype, Attributes of_narrow) {
  if (x->type.dtype == dtype) return x;
  const bool once = x->IsConstant() && of_narrow.empty();
  if (Value* known = once ? lowering_.ConstantCast(x, dtype) : nullptr) return known;
  Type type = x->type;
  type.dtype = dtype;
  KernelCall call;
  call.kernel = names::kCast;
  if (IsNarrow(x->type.dtype) || IsNarrow(dtype)) {
    call.kernel = names::kCastNarrow;
    call.attributes = std::move(of_narrow);
  }
  call.inputs.push_back(x);
  if (!type.ranked) call.shapes.push_back(ShapeOf(x));
  call.outputs.push_back(std::move(type));
  Value* output = Call(std::move(call))[0];
  const bool integers = (dtype == kInt64 || dtype == kInt32) && x->elements;
  if (integers) SetElements(output, *x->elements);
  if (once && output->IsConstant()) lowering_.SetConstantCast(x, output);
  return output;
}

Value* Op::Transpose(Value* x, const Ints& perm) {
  Type type = x->type;
  bool same = true;
  for (std::size_t i = 0; i < perm.size(); ++i) {
    type.dims[i] = x->type.dims[static_cast<std::size_t>(perm[i])];
    same = same && perm[i] == static_cast<std::int64_t>(i);
  }
  if (same) return x;
  return Call(names::kTranspose, {x}, {{"perm", perm}}, std::move(type));
}

Value* Op::Concat(const std::vector<Value*>& parts, int axis) {
  Type type = parts[0]->type;
  Status fits;
  for (std::size_t i = 1; fits && i < parts.size(); ++i) {
    fits = contract::ConcatSizes(type.dims, parts[i]->type.dims, static_cast<std::size_t>(axis), i,
                                 &type.dims, ShapeError());
  }
  if (fits) return Call(names::kConcat, parts, {{"axis", std::int64_t{axis}}}, std::move(type));
  if (failure_) failure_ = fits;
  return parts[0];
}

Value* Op::Unary(const std::string& kernel, Value* x, Attributes attributes) {
  KernelCall call;
  call.kernel = kernel;
  call.inputs.push_back(x);
  call.attributes = std::move(attributes);
  if (!x->type.ranked) call.shapes.push_back(ShapeOf(x));
  call.outputs.push_back(x->type);
  return Call(std::move(call))[0];
}

Result<Value*> Op::BinaryTo(const std::string& kernel, Value* a, Value* b, DLDataType dtype) {
  if (!a->type.ranked || !b->type.ranked) {
    Value* left = ShapeOf(a);
    Value* right = ShapeOf(b);
    const DimExpr rank = DimExpr::Max(left->type.dims[0], right->type.dims[0]);
    KernelCall call{kernel, {a, b}, {}, {UnrankedTensorOf(dtype)}, {}};
    call.shapes.push_back(Call(names::kShapeBroadcast, {left, right}, {}, TensorOf(kInt64, {rank})));
    return Call(std::move(call))[0];
  }
  Result<Shape> dims = Broadcast(a->type.dims, b->type.dims);
  if (!dims) return Forward(dims);
  return Call(kernel, {a, b}, {}, TensorOf(dtype, *std::move(dims)));
}

Result<Value*> Op::Binary(const std::string& kernel, Value* a, Value* b) {
  return BinaryTo(kernel, a, b, a->type.dtype);
}

Value* Op::Apply(const std::string& kernel, Value* a, Value* b) {
  Result<Value*> result = Binary(kernel, a, b);
  if (result) return *result;
  if (failure_) failure_ = Forward(result);
  return a;
}

Value* Op::Compare(const std::string& kernel, Value* a, Value* b) {
  Result<Value*> result = BinaryTo(kernel, a, b, kBool8);
  if (result) return *result;
  if (failure_) failure_ = Forward(result);
  return a;
}

Value* Op::Reduce(const std::string& kernel, Value* x, const Ints& axes, bool keepdims) {
  std::vector<bool> reduced(x->type.dims.size(), false);
  for (const std::int64_t axis : axes)
    reduced[static_cast<std::size_t>(axis < 0 ? axis + x->type.rank() : axis)] = true;
  auto dims = contract::ReducedSizes<Shape>(x->type.dims, reduced, keepdims);
  // No axes mean all of them to the kernel.
  if (axes.empty()) return x;
  return Call(kernel, {x}, {{"axes", axes}, {"keepdims", std::int64_t{keepdims}}},
              TensorOf(x->type.dtype, std::move(dims)));
}

Value* Op::ShapeValue(ShapeCall shape, int rank) {
  return Call(shape.kernel, std::move(shape.inputs), std::move(shape.attributes), TensorOf(kInt64, {rank}));
}

Value* Op::CallShaped(const std::string& kernel, std::vector<Value*> inputs, Attributes attributes,
                      DLDataType dtype, const OpenShape& known, ShapeCall shape) {
  Value* dims = ShapeValue(std::move(shape), static_cast<int>(known.size()));
  return CallSized(kernel, std::move(inputs), std::move(attributes), dtype, dims, known);
}

Value* Op::Missing(DLDataType dtype) {
  HostTensor tensor;
  tensor.dtype = dtype;
  tensor.shape = {0};
  tensor.bytes = CopyBytes({});
  return Constant(std::move(tensor));
}

std::vector<Value*> Op::Arguments(int first, int last) {
  std::vector<Value*> arguments;
  while (last >= first && in(last) == nullptr) --last;
  for (int i = first; i <= last; ++i) {
    arguments.push_back(in(i) != nullptr ? in(i) : Missing(in(0)->type.dtype));
  }
  return arguments;
}

Value* Op::MakeAdt(std::vector<Value*> fields, Type type) {
  Graph& graph = lowering_.graph();
  Node* node = graph.NewNode(NodeKind::kMakeAdt);
  node->inputs = std::move(fields);
  node->outputs.push_back(graph.NewValue(NextName(), std::move(type)));
  lowering_.Append(node);
  return node->outputs[0];
}

Value* Op::Field(Value* adt, std::uint32_t index, Type type) {
  Graph& graph = lowering_.graph();
  Node* node = graph.NewNode(NodeKind::kField);
  node->inputs.push_back(adt);
  node->field = index;
  node->outputs.push_back(graph.NewValue(NextName(), graph.WithFreshDims(std::move(type))));
  lowering_.Append(node);
  lowering_.Define(node->outputs[0]);
  return node->outputs[0];
}

}  // namespace rewire::compiler
