// SPDX-License-Identifier: Apache-2.0
//
// If, Loop and Scan. Loop and Scan become one kind of loop. What they stack up is a sequence that the loop
// carries and that is joined behind it.
#include <set>
#include <utility>

#include "rewire/compiler/import/onnx_proto.h"
#include "rewire/compiler/operators/registry.h"

namespace rewire::compiler {
namespace {

// A loop's types are tried until they hold; each try makes at least one of them more general.
constexpr int kMaxTries = 8;

bool HasPoison(const Lowering& lowering, const std::vector<Value*>& values) {
  for (const Value* value : values) {
    if (lowering.IsPoison(value)) return true;
  }
  return false;
}

void SetPoison(Op& op) {
  for (int i = 0; i < op.outputs(); ++i) op.Set(i, op.lowering().poison());
}

// A sequence's ADT has one field an element.
Value* EmptySequence(Op& op, const Type& element) { return op.MakeAdt({}, SequenceOf(element)); }

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

// One loop of either operator.
struct LoopParts {
  Value* trip = nullptr;       // i64[], null: no bound
  Value* condition = nullptr;  // bool[], null: true
  std::vector<Value*> initial;
  int stacked = 0;  // outputs that are stacked up
  // Joins of the stacked outputs: the new axis, and whether the first comes last.
  Ints axes;
  Ints directions;
};

// What a body gives: the condition (null: true), the carried values, the elements to stack.
struct BodyResults {
  Value* condition = nullptr;
  std::vector<Value*> carried, elements;
  bool poison = false;
};

class LoopBuilder {
 public:
  LoopBuilder(Op* op, LoopParts parts) : op_(*op), graph_(op->lowering().graph()), parts_(std::move(parts)) {}

  // `lower_body` fills the current block from the iteration number and the carried values.
  template <typename LowerBody>
  Status Build(const LowerBody& lower_body) {
    AddLists();
    std::vector<Type> types;
    for (const Value* value : parts_.initial) types.push_back(value->type);
    for (int i = 0; i < kMaxTries; ++i) {
      Block block;
      Block* around = op_.lowering().SwapBlock(&block);
      Result<bool> holds = Try(lower_body, &block, &types);
      op_.lowering().SwapBlock(around);
      if (!holds) return Forward(holds);
      if (poison_) {
        SetPoison(op_);
        return {};
      }
      if (*holds) return Finish(std::move(block), types);
    }
    return op_.Unsupported("the types that it carries do not settle");
  }

 private:
  // Carried strings bring their lists along, behind all others.
  void AddLists() {
    given_ = parts_.initial.size();
    for (std::size_t i = 0; i < given_; ++i) {
      if (!op_.lowering().strings().Has(parts_.initial[i])) continue;
      of_strings_.push_back(i);
      const StringList list = op_.lowering().ListOf(parts_.initial[i]);
      parts_.initial.insert(parts_.initial.end(), {list.offsets, list.bytes});
    }
  }
  // Says of the carried values which ones are strings.
  void SetLists(const std::vector<Value*>& values) {
    StringTables& strings = op_.lowering().strings();
    for (std::size_t i = 0; i < of_strings_.size(); ++i) {
      Value* const* list = values.data() + given_ + 2 * i;
      // The initial ones are known already.
      if (!strings.Has(values[of_strings_[i]]))
        strings.Set(values[of_strings_[i]], StringList{list[0], list[1]});
    }
  }
  // Adds the lists of the strings that a body gives.
  Status AddListsOf(const std::vector<Value*>& carried, BodyResults* results) {
    StringTables& strings = op_.lowering().strings();
    for (const Value* element : results->elements) {
      if (strings.Has(element)) return op_.Unsupported("its body stacks up strings");
    }
    for (std::size_t i = 0, k = 0; i < given_; ++i) {
      Value* value = results->carried[i];
      const bool are_carried = k < of_strings_.size() && of_strings_[k] == i;
      if (strings.Has(value) != are_carried)
        return op_.Unsupported("carried value {} is strings either at first or later, not both", i);
      if (!are_carried) continue;
      StringList list = {carried[given_ + 2 * k], carried[given_ + 2 * k + 1]};
      if (value != carried[i]) list = op_.lowering().ListOf(value);
      results->carried.insert(results->carried.end(), {list.offsets, list.bytes});
      ++k;
    }
    return {};
  }

  // An optional that the body gives on as what it holds is carried as an optional. Behind the loop it is what
  // it holds, as the body's result is.
  void WrapOptionals(const std::vector<Type>& types, BodyResults* results) {
    for (std::size_t i = 0; i < types.size(); ++i) {
      Value*& value = results->carried[i];
      if (types[i].kind != TypeKind::kOptional || value->type.kind == TypeKind::kOptional) continue;
      value = op_.MakeAdt({value}, OptionalOf(value->type));
      opened_.insert(i);
    }
  }

  template <typename LowerBody>
  Result<bool> Try(const LowerBody& lower_body, Block* block, std::vector<Type>* types) {
    block->parameters = {graph_.NewValue("iteration", TensorOf(kInt64, {}))};
    std::vector<Value*> carried = parts_.initial;
    for (std::size_t i = 0; i < carried.size(); ++i) {
      if (unchanged_.contains(i)) continue;
      carried[i] = graph_.NewValue("carried", (*types)[i]);
      op_.lowering().Define(carried[i]);
      block->parameters.push_back(carried[i]);
    }
    std::vector<Value*> sequences;
    sequences.reserve(static_cast<std::size_t>(parts_.stacked));
    for (int i = 0; i < parts_.stacked; ++i) {
      sequences.push_back(graph_.NewValue("stacked", SequenceOf(UnrankedTensorOf(kFloat32))));
    }
    block->parameters.insert(block->parameters.end(), sequences.begin(), sequences.end());
    SetLists(carried);
    Result<BodyResults> results = lower_body(
        block->parameters[0], {carried.begin(), carried.begin() + static_cast<std::ptrdiff_t>(given_)});
    if (!results) return Forward(results);
    poison_ = results->poison;
    if (poison_) return true;
    if (Status added = AddListsOf(carried, &*results); !added) return Forward(added);
    WrapOptionals(*types, &*results);
    if (FindUnchanged(carried, results->carried)) return false;
    bool holds = true;
    for (std::size_t i = 0; i < types->size(); ++i) {
      if (unchanged_.contains(i)) continue;
      Result<bool> fits = Widen(i, results->carried[i]->type, &(*types)[i]);
      if (!fits) return fits;
      holds = holds && *fits;
    }
    if (!holds) return false;
    block->results = {results->condition};
    for (std::size_t i = 0; i < types->size(); ++i) {
      if (!unchanged_.contains(i)) block->results.push_back(results->carried[i]);
    }
    conditional_ = parts_.condition != nullptr || results->condition != nullptr;
    elements_.clear();
    for (std::size_t i = 0; i < sequences.size(); ++i) {
      Value* element = results->elements[i];
      elements_.push_back(element->type);
      sequences[i]->type = SequenceOf(element->type);
      block->results.push_back(Insert(sequences[i], element, parts_.directions[i] != 0));
    }
    return true;
  }

  // Exporters carry weights through loops whose bodies give them on as they are. Inside the body such a value
  // is the initial one: a constant then stays one, and can be packed. Returns whether there are more of them
  // than were known.
  bool FindUnchanged(const std::vector<Value*>& carried, const std::vector<Value*>& results) {
    const std::size_t known = unchanged_.size();
    for (std::size_t i = 0; i < carried.size(); ++i) {
      if (results[i] == carried[i]) unchanged_.insert(i);
    }
    return unchanged_.size() > known;
  }

  // Whether a carried value of this type may be given on as `type`, which is made more general otherwise.
  Result<bool> Widen(std::size_t index, const Type& given, Type* type) {
    const std::optional<Type> common = CommonType(*type, given, [&] { return graph_.FreshSymbol(""); });
    if (!common) {
      return op_.Unsupported("carried value {} is {} at first and then {}", index, TypeText(*type),
                             TypeText(given));
    }
    const bool same_form = TypeText(*common) == TypeText(*type);
    if (same_form) return true;
    // A dimension that has already been given up may be anything.
    if (type->IsTensor() && common->ranked && type->ranked) {
      bool only_open = true;
      for (std::size_t d = 0; d < type->dims.size(); ++d) {
        const bool differs = !(type->dims[d] == given.dims[d]);
        if (differs && !open_.contains({index, d})) {
          only_open = false;
          open_.insert({index, d});
        }
      }
      if (only_open) return true;
    }
    *type = *common;
    return false;
  }

  Value* Insert(Value* sequence, Value* element, bool in_front) {
    Op::KernelCall call;
    call.kernel = "rewire.seq.insert";
    call.inputs = {sequence, element};
    if (in_front) call.inputs.push_back(op_.IntValue(0));
    call.outputs = {sequence->type};
    call.returns = true;
    call.objects = true;
    return op_.Call(std::move(call))[0];
  }

  Status Finish(Block block, const std::vector<Type>& types) {
    Lowering& lowering = op_.lowering();
    Node* node = graph_.NewNode(NodeKind::kLoop);
    node->inputs = {parts_.trip, parts_.condition};
    std::vector<Value*> results = parts_.initial;
    for (std::size_t i = 0; i < types.size(); ++i) {
      if (unchanged_.contains(i)) continue;
      node->inputs.push_back(parts_.initial[i]);
      Type type = types[i];
      for (std::size_t d = 0; d < type.dims.size(); ++d) {
        if (open_.contains({i, d})) type.dims[d] = DimExpr::Symbol(graph_.FreshSymbol(""));
      }
      results[i] = graph_.NewValue(op_.NextName(), std::move(type));
      node->outputs.push_back(results[i]);
    }
    for (const Type& element : elements_) {
      node->inputs.push_back(EmptySequence(op_, element));
      results.push_back(graph_.NewValue(op_.NextName(), SequenceOf(element)));
      node->outputs.push_back(results.back());
    }
    node->blocks.push_back(std::move(block));
    lowering.Append(node);
    for (Value* output : node->outputs) lowering.Define(output);
    SetLists(results);
    for (std::size_t i = 0; i < given_; ++i) {
      Value* result = results[i];
      if (opened_.contains(i)) result = op_.Field(result, 0, *result->type.element);
      op_.Set(static_cast<int>(i), result);
    }
    for (std::size_t i = 0; i < elements_.size(); ++i)
      op_.Set(static_cast<int>(given_ + i), Stack(results[types.size() + i], i));
    return {};
  }

  Value* Stack(Value* sequence, std::size_t index) {
    const Type& element = elements_[index];
    Op::KernelCall call;
    call.kernel = "rewire.seq.concat";
    call.inputs = {sequence};
    Type type = graph_.WithFreshDims(element);
    const std::int64_t rank = type.rank() + 1;
    std::int64_t axis = parts_.axes[index];
    if (axis < 0) axis += rank;
    call.attributes = {{"axis", axis}, {"new_axis", std::int64_t{1}}};
    // What an empty sequence gives.
    const std::optional<Ints> dims = ConstantDims(element.dims);
    if (element.ranked && dims) call.attributes.push_back({"shape", *dims});
    call.attributes.push_back({"dtype", DTypeName(element.dtype)});
    if (element.ranked && axis >= 0 && axis < rank) {
      const std::optional<Ints> trips = KnownInts(parts_.trip);
      const bool known = trips && trips->size() == 1 && !conditional_;
      type.dims.insert(type.dims.begin() + axis,
                       known ? DimExpr((*trips)[0]) : DimExpr::Symbol(graph_.FreshSymbol("stacked")));
    }
    call.outputs = {std::move(type)};
    call.returns = true;
    call.objects = true;
    return op_.Call(std::move(call))[0];
  }

  Op& op_;
  Graph& graph_;
  LoopParts parts_;
  std::size_t given_ = 0;                // carried values of the model
  std::vector<std::size_t> of_strings_;  // those that are strings
  std::set<std::size_t> opened_;         // optionals that the body gives on as what they hold
  bool poison_ = false;
  bool conditional_ = true;
  std::vector<Type> elements_;
  std::set<std::pair<std::size_t, std::size_t>> open_;
  std::set<std::size_t> unchanged_;  // carried values that the body gives on as they are
};

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
    parts.trip = op.Apply("rewire.max", parts.trip, op.IntValue(0));
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
  DimExpr length;
  for (std::size_t i = 0; i < count; ++i) {
    const Value* input = op.in(states + static_cast<int>(i));
    if (!input->type.IsTensor() || !input->type.ranked)
      return op.Unsupported("the rank of a scanned input is not known");
    Result<int> axis = op.Axis(axes[i], input->type.rank());
    if (!axis) return Forward(axis);
    axes[i] = *axis;
    if (i == 0) length = input->type.dims[static_cast<std::size_t>(*axis)];
  }
  parts.trip = op.Reshape(op.DimsValue({length}), {});
  Value* last = op.Reshape(op.DimsValue({length - DimExpr(1)}), {});
  return LoopBuilder(&op, std::move(parts))
      .Build([&](Value* iteration, const std::vector<Value*>& carried) -> Result<BodyResults> {
        std::vector<Value*> inputs = carried;
        for (std::size_t i = 0; i < count; ++i) {
          Value* input = op.in(states + static_cast<int>(i));
          Value* index = directions[i] != 0 ? op.Apply("rewire.sub", last, iteration) : iteration;
          Type element = input->type;
          element.dims.erase(element.dims.begin() + axes[i]);
          inputs.push_back(op.Call("rewire.gather", {input, index}, {{"axis", axes[i]}}, std::move(element)));
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

}  // namespace

std::span<const Operator> ControlFlowOperators() {
  static constexpr Operator kOperators[] = {
      {"If", 1, 0, 1, 1, "else_branch then_branch", LowerIf},
      {"Loop", 1, 0, 2, kAnyNumber, "body", LowerLoop, nullptr, kAnyKind | kMayLack | kTakesStrings},
      {"Scan", 9, 0, 1, kAnyNumber,
       "body num_scan_inputs scan_input_axes scan_input_directions scan_output_axes scan_output_directions",
       LowerScan, nullptr, kAnyKind | kTakesStrings},
  };
  return kOperators;
}

}  // namespace rewire::compiler
