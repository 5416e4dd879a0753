// SPDX-License-Identifier: Apache-2.0
//
// If, Loop and Scan.
#include <algorithm>
#include <utility>

#include "rewire/compiler/import/onnx_proto.h"
#include "rewire/compiler/lower/registry.h"
#include "rewire/compiler/operators/control_flow/loop_builder.h"
#include "rewire/compiler/operators/decomposition.h"
#include "rewire/kernels/contract/elementwise.h"
#include "rewire/kernels/contract/indexing.h"
#include "rewire/kernels/contract/shape.h"

namespace rewire::compiler {
namespace {

bool HasPoison(const Lowering& lowering, const std::vector<Value*>& values) {
  for (const Value* value : values) {
    if (lowering.IsPoison(value)) return true;
  }
  return false;
}

Status LowerIf(Op& op, const Operator& /*row*/) {
  Lowering& lowering = op.lowering();
  const onnx::GraphProto* bodies[] = {op.GraphAttribute("then_branch"), op.GraphAttribute("else_branch")};
  if (bodies[0] == nullptr || bodies[1] == nullptr) return op.Invalid("a branch is missing");
  if (const std::optional<Ints> known = KnownInts(op.in(0)); known && known->size() == 1) {
    Result<Continuation> continuation =
        lowering.LowerSubgraph(*bodies[(*known)[0] != 0 ? 0 : 1], op.scope(), {});
    if (!continuation) return Forward(continuation);
    return lowering.Deliver(&op, *std::move(continuation));
  }
  Value* condition = op.Reshape(op.in(0), {});
  Continuation continuation;
  continuation.split = lowering.graph().NewNode(NodeKind::kIf);
  continuation.split->inputs.push_back(condition);
  continuation.split->blocks.resize(2);
  for (const std::size_t branch : {0, 1}) {
    Block* around = lowering.SwapBlock(&continuation.split->blocks[branch]);
    Result<Continuation> end = lowering.LowerSubgraph(*bodies[branch], op.scope(), {});
    lowering.SwapBlock(around);
    if (!end) return Forward(end);
    continuation.branches.push_back(*std::move(end));
  }
  lowering.Append(continuation.split);
  return lowering.Deliver(&op, std::move(continuation));
}

bool IsTrue(const Value* value) {
  const std::optional<Ints> known = KnownInts(value);
  return known && known->size() == 1 && (*known)[0] != 0;
}

Status LowerLoop(Op& op, const Operator& /*row*/) {
  const onnx::GraphProto* body = op.GraphAttribute("body");
  if (body == nullptr) return op.Invalid("its body is missing");
  Lowering& lowering = op.lowering();
  LoopParts parts;
  for (int i = 0; i < 2; ++i) {
    if (lowering.strings().Has(op.in(i))) return op.Invalid("input {} is strings", i);
  }
  if (op.in(0) != nullptr) {
    parts.trip = op.Reshape(op.in(0), {});
    // The loop counts up to it.
    parts.trip = op.Apply(names::kMax, parts.trip, op.IntValue(0));
  }
  if (op.in(1) != nullptr && !IsTrue(op.in(1))) parts.condition = op.Reshape(op.in(1), {});
  for (int i = 2; i < op.inputs(); ++i) {
    if (op.in(i) == nullptr) return op.Invalid("input {} is missing", i);
    parts.initial.push_back(op.in(i));
  }
  const std::size_t carried_count = parts.initial.size();
  parts.stacked = body->output_size() - 1 - static_cast<int>(carried_count);
  if (parts.stacked < 0) return op.Invalid("its body has {} outputs", body->output_size());
  parts.axes = Ints(static_cast<std::size_t>(parts.stacked), 0);
  parts.directions = parts.axes;
  Value* always = op.Cast(op.Scalar(kUInt8, 1), kBool8);
  return LoopBuilder(&op, std::move(parts))
      .Build([&](Value* iteration, const std::vector<Value*>& carried) -> Result<BodyResults> {
        std::vector<Value*> inputs = {iteration, always};
        inputs.insert(inputs.end(), carried.begin(), carried.end());
        const Result<std::vector<Value*>> results = lowering.LowerBody(*body, op.scope(), inputs);
        if (!results) return Forward(results);
        BodyResults all;
        all.poison = HasPoison(lowering, *results);
        if (all.poison) return all;
        if (!IsTrue((*results)[0])) all.condition = op.Reshape((*results)[0], {});
        const auto middle = results->begin() + 1 + static_cast<std::ptrdiff_t>(carried_count);
        all.carried.assign(results->begin() + 1, middle);
        all.elements.assign(middle, results->end());
        return all;
      });
}

// The length of what is scanned, i64[]. All inputs have one, which the run checks where it cannot be said.
Result<Value*> ScannedLength(Op& op, Shape lengths) {
  const auto differs = [&](const DimExpr& length) { return !(length == lengths[0]); };
  if (std::none_of(lengths.begin(), lengths.end(), differs))
    return op.Reshape(op.DimsValue({lengths[0]}), {});
  for (const DimExpr& length : lengths) {
    if (length.IsConstant() && lengths[0].IsConstant() && differs(length))
      return op.Invalid("the inputs that it scans have lengths {}, expected one", ShapeText(lengths));
  }
  return op.Call(names::kShapeSame, {op.DimsValue(lengths)},
                 {{"what", std::string("the lengths of what Scan scans")}}, TensorOf(kInt64, {}));
}

Status LowerScan(Op& op, const Operator& /*row*/) {
  const onnx::GraphProto* body = op.GraphAttribute("body");
  const std::int64_t scanned = op.Int("num_scan_inputs", 0);
  if (body == nullptr || scanned < 1 || scanned > op.inputs())
    return op.Invalid("num_scan_inputs is {}", scanned);
  const int states = op.inputs() - static_cast<int>(scanned);
  Lowering& lowering = op.lowering();
  LoopParts parts;
  for (int i = 0; i < states; ++i) parts.initial.push_back(op.in(i));
  parts.stacked = body->output_size() - states;
  if (parts.stacked < 0) return op.Invalid("its body has {} outputs", body->output_size());
  const auto stacked = static_cast<std::size_t>(parts.stacked);
  parts.axes = op.IntList("scan_output_axes", Ints(stacked, 0));
  parts.directions = op.IntList("scan_output_directions", Ints(stacked, 0));
  const auto count = static_cast<std::size_t>(scanned);
  Ints axes = op.IntList("scan_input_axes", Ints(count, 0));
  const Ints directions = op.IntList("scan_input_directions", Ints(count, 0));
  if (axes.size() != count || directions.size() != count || parts.axes.size() != stacked ||
      parts.directions.size() != stacked) {
    return op.Invalid("its axes and directions do not fit its inputs and outputs");
  }
  Shape lengths;
  for (std::size_t i = 0; i < count; ++i) {
    const Value* input = op.in(states + static_cast<int>(i));
    if (!input->type.IsTensor() || !input->type.ranked)
      return op.Unsupported("the rank of a scanned input is not known");
    Result<int> axis = op.Axis(axes[i], input->type.rank());
    if (!axis) return Forward(axis);
    axes[i] = *axis;
    lengths.push_back(input->type.dims[static_cast<std::size_t>(*axis)]);
  }
  const DimExpr length = lengths[0];
  const Result<Value*> trip = ScannedLength(op, std::move(lengths));
  if (!trip) return Forward(trip);
  parts.trip = *trip;
  Value* last = op.Reshape(op.DimsValue({length - DimExpr(1)}), {});
  return LoopBuilder(&op, std::move(parts))
      .Build([&](Value* iteration, const std::vector<Value*>& carried) -> Result<BodyResults> {
        std::vector<Value*> inputs = carried;
        for (std::size_t i = 0; i < count; ++i) {
          Value* input = op.in(states + static_cast<int>(i));
          Value* index = directions[i] != 0 ? op.Apply(names::kSub, last, iteration) : iteration;
          Type element = input->type;
          element.dims.erase(element.dims.begin() + axes[i]);
          inputs.push_back(op.Call(names::kGather, {input, index}, {{"axis", axes[i]}}, std::move(element)));
          lowering.strings().Copy(input, inputs.back());
        }
        const Result<std::vector<Value*>> results = lowering.LowerBody(*body, op.scope(), inputs);
        if (!results) return Forward(results);
        BodyResults all;
        all.poison = HasPoison(lowering, *results);
        all.carried.assign(results->begin(), results->begin() + states);
        all.elements.assign(results->begin() + states, results->end());
        return all;
      });
}

// Version 9's form of version 8's Scan of one batch: the same body, and the directions under another name.
onnx::NodeProto ScanOfOneBatch(const Op& op, const onnx::GraphProto& body, std::int64_t scanned) {
  onnx::NodeProto node;
  node.set_op_type(op.type());
  node.set_name(op.node().name());
  for (int i = 1; i < op.inputs(); ++i) node.add_input("input " + std::to_string(i));
  for (int i = 0; i < body.output_size(); ++i) node.add_output("output " + std::to_string(i));
  onnx::AttributeProto* graph = node.add_attribute();
  graph->set_name("body");
  graph->set_type(onnx::AttributeProto::GRAPH);
  *graph->mutable_g() = body;
  *node.add_attribute() = IntAttribute("num_scan_inputs", scanned);
  if (op.HasAttribute("directions"))
    *node.add_attribute() = IntsAttribute("scan_input_directions", op.IntList("directions"));
  return node;
}

// Scans each element of a batch by itself, and stacks up what they give.
Status LowerScanOfBatch(Op& op, const Operator& row) {
  const onnx::GraphProto* body = op.GraphAttribute("body");
  const std::int64_t scanned = op.Int("num_scan_inputs", 0);
  if (body == nullptr || scanned < 1 || scanned >= op.inputs())
    return op.Invalid("num_scan_inputs is {}", scanned);
  if (op.in(0) != nullptr) return op.Unsupported("lengths of its sequences are not supported");
  const onnx::NodeProto node = ScanOfOneBatch(op, *body, scanned);
  for (int i = 1; i < op.inputs(); ++i) {
    if (op.in(i) == nullptr) return op.Invalid("input {} is missing", i);
    if (!op.in(i)->type.IsTensor() || !op.in(i)->type.ranked || op.in(i)->type.rank() < 1)
      return op.Unsupported("input {} is {}, expected a batch of known rank", i, TypeText(op.in(i)->type));
  }
  LoopParts parts;
  parts.trip = op.Reshape(op.DimsValue({op.in(1)->type.dims[0]}), {});
  parts.stacked = body->output_size();
  parts.axes = Ints(static_cast<std::size_t>(parts.stacked), 0);
  parts.directions = parts.axes;
  Lowering& lowering = op.lowering();
  return LoopBuilder(&op, std::move(parts))
      .Build([&](Value* iteration, const std::vector<Value*>& /*carried*/) -> Result<BodyResults> {
        Scope scope = InnerScope(op.scope());
        for (int i = 1; i < op.inputs(); ++i) {
          Type element = op.in(i)->type;
          element.dims.erase(element.dims.begin());
          Value* one = op.Call(names::kGather, {op.in(i), iteration}, {{"axis", std::int64_t{0}}}, element);
          lowering.strings().Copy(op.in(i), one);
          scope.names[node.input(i - 1)] = one;
        }
        Op inner(node, op.opset(), &scope, &lowering);
        if (Status lowered = LowerScan(inner, row); !lowered) return Forward(lowered);
        BodyResults all;
        for (const std::string& output : node.output()) all.elements.push_back(scope.Find(output));
        all.poison = HasPoison(lowering, all.elements);
        return all;
      });
}

}  // namespace

std::span<const Operator> ControlFlowOperators() {
  static constexpr Operator kOperators[] = {
      {"If", 1, 0, 1, 1, "else_branch then_branch", LowerIf},
      {"Loop", 1, 0, 2, kAnyNumber, "body", LowerLoop, nullptr, kAnyKind | kMayLack | kTakesStrings},
      {"Scan", 8, 8, 2, kAnyNumber, "body directions num_scan_inputs", LowerScanOfBatch, nullptr,
       kAnyKind | kMayLack | kTakesStrings},
      {"Scan", 9, 0, 1, kAnyNumber,
       "body num_scan_inputs scan_input_axes scan_input_directions scan_output_axes scan_output_directions",
       LowerScan, nullptr, kAnyKind | kTakesStrings},
  };
  return kOperators;
}

}  // namespace rewire::compiler
