// SPDX-License-Identifier: Apache-2.0
//
// Sequences and optionals: ADTs (tagged tuples) with one field per element.
#include "rewire/kernels/contract/sequence.h"
#include "rewire/compiler/import/dtypes.h"
#include "rewire/compiler/import/onnx_proto.h"
#include "rewire/compiler/lower/registry.h"

namespace rewire::compiler {
namespace {

// A kernel over sequences, which makes its result.
Value* CallSequence(Op& op, const std::string& kernel, std::vector<Value*> inputs, Attributes attributes,
                    Type type) {
  Op::KernelCall call;
  call.kernel = kernel;
  call.inputs = std::move(inputs);
  call.attributes = std::move(attributes);
  call.outputs.push_back(op.lowering().graph().WithFreshDims(std::move(type)));
  call.returns = true;
  call.objects = true;
  return op.Call(std::move(call))[0];
}

Status ExpectSequence(const Op& op) {
  if (op.in(0)->type.kind == TypeKind::kSequence) return {};
  return op.Invalid("input 0 is {}, expected a sequence", TypeText(op.in(0)->type));
}

Status LowerSequenceEmpty(Op& op, const Operator& /*row*/) {
  Result<DLDataType> dtype = op.DTypeAttribute("dtype", kFloat32);
  if (!dtype) return Forward(dtype);
  Type type = SequenceOf(UnrankedTensorOf(*dtype));
  type.empty = true;
  op.Set(0, op.MakeAdt({}, std::move(type)));
  return {};
}

Status LowerSequenceConstruct(Op& op, const Operator& /*row*/) {
  std::vector<Value*> fields;
  Type type = SequenceOf(op.in(0)->type);
  for (int i = 0; i < op.inputs(); ++i) {
    fields.push_back(op.in(i));
    std::optional<Type> common = CommonType(type, SequenceOf(op.in(i)->type), {});
    if (!common) return op.Invalid("inputs 0 and {} differ in dtype", i);
    type = *std::move(common);
  }
  op.Set(0, op.MakeAdt(std::move(fields), std::move(type)));
  return {};
}

Status LowerSequenceAt(Op& op, const Operator& row) {
  if (Status sequence = ExpectSequence(op); !sequence) return sequence;
  op.Set(0, CallSequence(op, row.kernel, {op.in(0), op.in(1)}, {}, *op.in(0)->type.element));
  return {};
}

Status LowerSequenceInsert(Op& op, const Operator& row) {
  if (Status sequence = ExpectSequence(op); !sequence) return sequence;
  std::optional<Type> type = CommonType(op.in(0)->type, SequenceOf(op.in(1)->type), {});
  if (!type)
    return op.Invalid("input 1 is {}, input 0 {}", TypeText(op.in(1)->type), TypeText(op.in(0)->type));
  std::vector<Value*> inputs = {op.in(0), op.in(1)};
  if (op.in(2) != nullptr) inputs.push_back(op.in(2));
  op.Set(0, CallSequence(op, row.kernel, std::move(inputs), {}, *std::move(type)));
  return {};
}

Status LowerSequenceErase(Op& op, const Operator& row) {
  if (Status sequence = ExpectSequence(op); !sequence) return sequence;
  std::vector<Value*> inputs = {op.in(0)};
  if (op.in(1) != nullptr) inputs.push_back(op.in(1));
  op.Set(0, CallSequence(op, row.kernel, std::move(inputs), {}, op.in(0)->type));
  return {};
}

Value* Length(Op& op, Value* sequence) {
  Op::KernelCall call;
  call.kernel = names::kSeqLength;
  call.inputs = {sequence};
  call.outputs = {TensorOf(kInt64, {})};
  call.objects = true;
  return op.Call(std::move(call))[0];
}

Status LowerSequenceLength(Op& op, const Operator& /*row*/) {
  if (Status sequence = ExpectSequence(op); !sequence) return sequence;
  op.Set(0, Length(op, op.in(0)));
  return {};
}

Status LowerConcatFromSequence(Op& op, const Operator& row) {
  if (Status sequence = ExpectSequence(op); !sequence) return sequence;
  const std::int64_t new_axis = op.Int("new_axis", 0);
  if (new_axis != 0 && new_axis != 1) return op.Invalid("new_axis is {}, expected 0 or 1", new_axis);
  Type type = *op.in(0)->type.element;
  std::int64_t axis = op.Int("axis", 0);
  if (type.ranked) {
    Result<int> at = op.Axis(axis, type.rank() + static_cast<int>(new_axis));
    if (!at) return Forward(at);
    axis = *at;
    const DimExpr length = DimExpr::Symbol(kAnyDim);
    if (new_axis != 0) {
      type.dims.insert(type.dims.begin() + axis, length);
    } else {
      type.dims[static_cast<std::size_t>(axis)] = length;
    }
  }
  op.Set(0,
         CallSequence(op, row.kernel, {op.in(0)}, {{"axis", axis}, {"new_axis", new_axis}}, std::move(type)));
  return {};
}

Status LowerSplitToSequence(Op& op, const Operator& row) {
  Value* x = op.in(0);
  Result<int> axis = op.Axis(op.Int("axis", 0), x->type.rank());
  if (!axis) return Forward(axis);
  Type element = x->type;
  std::vector<Value*> inputs = {x};
  const bool keeps = op.Int("keepdims", 1) != 0;
  const bool keepdims = op.in(1) != nullptr || keeps;  // with lengths given, the axis always stays
  if (op.in(1) != nullptr) inputs.push_back(op.in(1));
  if (keepdims) {
    element.dims[static_cast<std::size_t>(*axis)] =
        op.in(1) == nullptr ? DimExpr(1) : DimExpr::Symbol(kAnyDim);
  } else {
    element.dims.erase(element.dims.begin() + *axis);
  }
  op.Set(0, CallSequence(op, row.kernel, std::move(inputs),
                         {{"axis", std::int64_t{*axis}}, {"keepdims", std::int64_t{keepdims}}},
                         SequenceOf(std::move(element))));
  return {};
}

Status LowerOptional(Op& op, const Operator& /*row*/) {
  const onnx::TypeProto* declared = op.TypeAttribute("type");
  if (op.in(0) != nullptr) {
    op.Set(0, op.MakeAdt({op.in(0)}, OptionalOf(op.in(0)->type)));
    return {};
  }
  if (declared == nullptr) return op.Invalid("it has neither an input nor a type");
  Result<Type> type = op.lowering().DeclaredType(*declared, "type");
  if (!type) return Forward(type);
  op.Set(0, op.MakeAdt({}, OptionalOf(*std::move(type))));
  return {};
}

Status LowerOptionalHasElement(Op& op, const Operator& /*row*/) {
  const Value* input = op.in(0);
  if (input == nullptr || input->type.kind != TypeKind::kOptional) {
    op.Set(0, op.Cast(op.Scalar(kUInt8, input == nullptr ? 0 : 1), kBool8));
    return {};
  }
  op.Set(0, op.Cast(Length(op, op.in(0)), kBool8));
  return {};
}

Status LowerOptionalGetElement(Op& op, const Operator& /*row*/) {
  Value* input = op.in(0);
  if (input->type.kind != TypeKind::kOptional) {
    op.Set(0, input);
    return {};
  }
  op.Set(0, op.Field(input, 0, *input->type.element));
  return {};
}

// One body call an element, over sequences and tensors that stay as they are; its outputs are sequences.
Status LowerSequenceMap(Op& op, const Operator& /*row*/) {
  const onnx::GraphProto* body = op.GraphAttribute("body");
  if (body == nullptr) return op.Invalid("its body is missing");
  if (Status sequence = ExpectSequence(op); !sequence) return sequence;
  Lowering& lowering = op.lowering();
  Graph& graph = lowering.graph();
  const auto outputs = static_cast<std::size_t>(body->output_size());
  Block block;
  block.parameters.push_back(graph.NewValue("iteration", TensorOf(kInt64, {})));
  for (std::size_t i = 0; i < outputs; ++i) {
    block.parameters.push_back(graph.NewValue("mapped", SequenceOf(UnrankedTensorOf(kFloat32))));
  }
  Value* trip = Length(op, op.in(0));
  Block* around = lowering.SwapBlock(&block);
  std::vector<Value*> inputs;
  for (int i = 0; i < op.inputs(); ++i) {
    Value* input = op.in(i);
    const bool element = input->type.kind == TypeKind::kSequence;
    inputs.push_back(
        element ? CallSequence(op, names::kSeqAt, {input, block.parameters[0]}, {}, *input->type.element)
                : input);
  }
  const Result<std::vector<Value*>> results = lowering.LowerBody(*body, op.scope(), inputs);
  block.results.push_back(nullptr);
  for (std::size_t i = 0; results && i < outputs; ++i) {
    Value* parameter = block.parameters[i + 1];
    parameter->type = SequenceOf((*results)[i]->type);
    block.results.push_back(
        CallSequence(op, names::kSeqInsert, {parameter, (*results)[i]}, {}, parameter->type));
  }
  lowering.SwapBlock(around);
  if (!results) return Forward(results);
  Node* node = graph.NewNode(NodeKind::kLoop);
  node->inputs = {trip, nullptr};
  for (std::size_t i = 0; i < outputs; ++i) {
    if (lowering.IsPoison((*results)[i])) {
      for (std::size_t k = 0; k < outputs; ++k) op.Set(static_cast<int>(k), lowering.poison());
      return {};
    }
    node->inputs.push_back(op.MakeAdt({}, block.parameters[i + 1]->type));
    node->outputs.push_back(graph.NewValue(op.NextName(), block.parameters[i + 1]->type));
  }
  node->blocks.push_back(std::move(block));
  lowering.Append(node);
  for (std::size_t i = 0; i < outputs; ++i) op.Set(static_cast<int>(i), node->outputs[i]);
  return {};
}

}  // namespace

std::span<const Operator> SequenceOperators() {
  static constexpr Operator kOperators[] = {
      {"ConcatFromSequence", 11, 0, 1, 1, "axis new_axis", LowerConcatFromSequence, names::kSeqConcat,
       kAnyKind},
      {"Optional", 15, 0, 0, 1, "type", LowerOptional, nullptr, kAnyKind},
      {"OptionalGetElement", 15, 0, 1, 1, "", LowerOptionalGetElement, nullptr, kAnyKind},
      {"OptionalHasElement", 15, 0, 0, 1, "", LowerOptionalHasElement, nullptr, kAnyKind},
      {"SequenceAt", 11, 0, 2, 2, "", LowerSequenceAt, names::kSeqAt, kAnyKind},
      {"SequenceConstruct", 11, 0, 1, kAnyNumber, "", LowerSequenceConstruct, nullptr, kAnyKind},
      {"SequenceEmpty", 11, 0, 0, 0, "dtype", LowerSequenceEmpty},
      {"SequenceErase", 11, 0, 1, 2, "", LowerSequenceErase, names::kSeqErase, kAnyKind},
      {"SequenceInsert", 11, 0, 2, 3, "", LowerSequenceInsert, names::kSeqInsert, kAnyKind},
      {"SequenceLength", 11, 0, 1, 1, "", LowerSequenceLength, nullptr, kAnyKind},
      {"SequenceMap", 17, 0, 1, kAnyNumber, "body", LowerSequenceMap, nullptr, kAnyKind},
      {"SplitToSequence", 11, 0, 1, 2, "axis keepdims", LowerSplitToSequence, names::kSeqSplit},
  };
  return kOperators;
}

}  // namespace rewire::compiler
