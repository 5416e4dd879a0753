// SPDX-License-Identifier: Apache-2.0
//
// Loop and Scan become one kind of loop. What they stack up is a sequence that the loop carries and that is
// joined behind it.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "rewire/compiler/ir/dim_length.h"
#include "rewire/compiler/lower/op.h"
#include "rewire/kernels/contract/movement.h"
#include "rewire/kernels/contract/sequence.h"

namespace rewire::compiler {

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

// The results of a body: the condition (null: true), the carried values, the elements to stack.
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
        for (int k = 0; k < op_.outputs(); ++k) op_.Set(k, op_.lowering().poison());
        return {};
      }
      if (*holds) return Finish(std::move(block), types);
      if (changes_rank_ && TurnsToUnroll()) return Unroll(lower_body, *TurnsToUnroll());
    }
    return op_.Unsupported("the types that it carries do not settle");
  }

 private:
  // The most turns that are lowered one by one. A rank changes in fewer, or goes beyond the highest.
  static constexpr std::int64_t kMostTurns = 32;

  // How many turns the loop has, if that is known and each can be lowered by itself.
  std::optional<std::int64_t> TurnsToUnroll() const {
    const std::optional<Ints> trips = parts_.trip != nullptr ? KnownInts(parts_.trip) : std::nullopt;
    const bool counted = trips && trips->size() == 1 && parts_.condition == nullptr && !has_condition_;
    if (!counted || !of_strings_.empty() || (*trips)[0] > kMostTurns) return std::nullopt;
    // Nothing says what no element would have looked like.
    return (*trips)[0] > 0 || parts_.stacked == 0 ? std::optional((*trips)[0]) : std::nullopt;
  }

  // A carried value whose rank changes has another type in each turn. So each turn is lowered by itself.
  template <typename LowerBody>
  Status Unroll(const LowerBody& lower_body, std::int64_t turns) {
    std::vector<Value*> carried = parts_.initial;
    std::vector<std::vector<Value*>> elements(static_cast<std::size_t>(parts_.stacked));
    for (std::int64_t turn = 0; turn < turns; ++turn) {
      Result<BodyResults> results = lower_body(op_.IntValue(turn), carried);
      if (!results) return Forward(results);
      if (results->poison) {
        for (int k = 0; k < op_.outputs(); ++k) op_.Set(k, op_.lowering().poison());
        return {};
      }
      if (results->condition != nullptr)
        return op_.Unsupported(
            "a value that it carries changes its rank, and a turn computes whether to go on");
      carried = std::move(results->carried);
      for (std::size_t i = 0; i < elements.size(); ++i) elements[i].push_back(results->elements[i]);
    }
    for (std::size_t i = 0; i < carried.size(); ++i) op_.Set(static_cast<int>(i), carried[i]);
    for (std::size_t i = 0; i < elements.size(); ++i) {
      Result<Value*> stacked = Join(std::move(elements[i]), parts_.axes[i], parts_.directions[i] != 0);
      if (!stacked) return Forward(stacked);
      op_.Set(static_cast<int>(carried.size() + i), *stacked);
    }
    return {};
  }

  // The elements along a new axis.
  Result<Value*> Join(std::vector<Value*> elements, std::int64_t axis, bool last_first) {
    const Type first = elements[0]->type;
    if (axis < 0) axis += first.rank() + 1;
    Shape dims = first.dims;
    if (!first.ranked || axis < 0 || axis > first.rank())
      return op_.Unsupported("elements {} are stacked along axis {}", TypeText(first), axis);
    dims.insert(dims.begin() + axis, DimExpr(1));
    for (Value*& element : elements) {
      const Type& type = element->type;
      if (!type.IsTensor() || !type.ranked || type.rank() != first.rank() || !(type.dtype == first.dtype) ||
          op_.lowering().strings().Has(element))
        return op_.Unsupported("stacked elements are {} and {}", TypeText(first), TypeText(type));
      element = op_.Reshape(element, dims);
    }
    if (last_first) std::reverse(elements.begin(), elements.end());
    dims[static_cast<std::size_t>(axis)] = static_cast<std::int64_t>(elements.size());
    return op_.Call(names::kConcat, elements, {{"axis", axis}}, TensorOf(first.dtype, dims));
  }

  // A loop's types are tried until they hold; each try makes at least one of them more general.
  static constexpr int kMaxTries = 8;

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
    has_condition_ = results->condition != nullptr;
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
    changes_rank_ = changes_rank_ || (type->IsTensor() && type->ranked && !common->ranked);
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
    call.kernel = names::kSeqInsert;
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
      node->inputs.push_back(op_.MakeAdt({}, SequenceOf(element)));
      results.push_back(graph_.NewValue(op_.NextName(), SequenceOf(element)));
      node->outputs.push_back(results.back());
    }
    const std::vector<Shape> rows = RowsOfFirstTurn(block);
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
      op_.Set(static_cast<int>(given_ + i), Stack(results[types.size() + i], i, rows[i]));
    return {};
  }

  // The shapes of the rows that the first turn stacks, by sizes that are known in front of the loop. A size
  // that only a turn can say is 0. Shapes of unknown rank stay empty.
  std::vector<Shape> RowsOfFirstTurn(const Block& body) const {
    std::unordered_set<const Value*> inside;
    CollectValues(body, &inside);
    std::map<std::string, DimExpr> at_first;  // symbols of carried values
    std::size_t parameter = 1;                // the first is the iteration
    for (std::size_t i = 0; i < parts_.initial.size(); ++i) {
      if (unchanged_.contains(i)) continue;
      const Type &of_turn = body.parameters[parameter++]->type, &given = parts_.initial[i]->type;
      if (!of_turn.IsTensor() || !of_turn.ranked || !given.ranked) continue;
      for (std::size_t d = 0; d < of_turn.dims.size() && d < given.dims.size(); ++d) {
        if (const std::optional<std::string> symbol = of_turn.dims[d].symbol())
          at_first.emplace(*symbol, given.dims[d]);
      }
    }
    const auto in_front = [&](const std::string& name) -> std::optional<DimExpr> {
      const auto source = graph_.symbols().find(name);
      if (source != graph_.symbols().end() && !inside.contains(source->second.value)) return std::nullopt;
      const auto first = at_first.find(name);
      return first == at_first.end() ? DimExpr(0) : first->second;
    };
    std::vector<Shape> rows;
    for (const Type& element : elements_) {
      Shape row = element.dims;
      // A negative size fails in the turn that has it, and there may be none.
      for (DimExpr& dim : row) {
        dim = DimExpr::Max(graph_.WithoutOwnSymbols(dim).Replaced(in_front), 0);
        if (IsTooLong(dim)) dim = 0;
      }
      rows.push_back(std::move(row));
    }
    return rows;
  }

  static void CollectValues(const Block& block, std::unordered_set<const Value*>* values) {
    values->insert(block.parameters.begin(), block.parameters.end());
    for (const Node* node : block.nodes) {
      values->insert(node->outputs.begin(), node->outputs.end());
      for (const Block& inner : node->blocks) CollectValues(inner, values);
    }
  }

  Value* Stack(Value* sequence, std::size_t index, const Shape& row) {
    const Type& element = elements_[index];
    Op::KernelCall call;
    call.kernel = names::kSeqConcat;
    call.inputs = {sequence};
    Type type = graph_.WithFreshDims(element);
    const std::int64_t rank = type.rank() + 1;
    std::int64_t axis = parts_.axes[index];
    if (axis < 0) axis += rank;
    call.attributes = {{"axis", axis}, {"new_axis", std::int64_t{1}}};
    // The dimensions that an empty sequence gives.
    const std::optional<Ints> dims = ConstantDims(row);
    if (element.ranked && dims) call.attributes.push_back({"shape", *dims});
    if (element.ranked && !dims) call.inputs.push_back(op_.DimsValue(row));
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
  bool has_condition_ = false;  // the body's
  bool changes_rank_ = false;   // a carried value
  std::vector<Type> elements_;
  std::set<std::pair<std::size_t, std::size_t>> open_;
  std::set<std::size_t> unchanged_;  // carried values that the body gives on as they are
};

}  // namespace rewire::compiler
