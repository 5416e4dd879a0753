// SPDX-License-Identifier: Apache-2.0
//
// Lowers lists of nodes, in one place or at every end of an If whose branches differ in rank.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "rewire/compiler/import/node_order.h"
#include "rewire/compiler/lower/lowering.h"
#include "rewire/compiler/lower/op.h"

namespace rewire::compiler {
namespace {

// Nodes behind Ifs may be lowered often, as each If may double the ends; this many nodes in all.
constexpr std::size_t kMaxRepeatedNodes = std::size_t{1} << 16;

std::string FailureText(const Unsupported& failure) {
  return fmt::format("{} '{}': {}", failure.op_type, failure.node, failure.reason);
}

}  // namespace

Result<Continuation> Lowering::LowerNodes(const google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes,
                                          Scope* scope, const Wanted& wanted) {
  const auto order = OrderNodes(nodes, [&](const std::string& name) { return scope->Has(name); });
  if (!order) return Forward(order);
  // A call may leave out outputs, and with them operators that have no meaning for its inputs.
  if (scope->function != nullptr) return LowerFrom(NodesFor(wanted.names, *order), scope, wanted);
  return LowerFrom(*order, scope, wanted);
}

Result<Continuation> Lowering::LowerFrom(Nodes nodes, Scope* scope, const Wanted& wanted) {
  Continuation end;
  end.block = block_;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (Status lowered = LowerNode(*nodes[i], scope); !lowered) return Forward(lowered);
    end.failure = std::exchange(failure_, std::nullopt);
    if (end.failure) return end;
    if (std::optional<Continuation> open = std::exchange(open_, std::nullopt)) {
      return LowerAtEnds(*std::move(open), *nodes[i], nodes.subspan(i + 1), scope, wanted);
    }
  }
  for (const std::string& name : wanted.names) {
    end.results.push_back(scope->Find(name));
    if (end.results.back() == nullptr) {
      return Fail(StatusCode::kInvalidFile, fmt::format("output '{}'{} is not computed", name, wanted.of));
    }
  }
  return end;
}

Result<Continuation> Lowering::LowerAtEnds(Continuation continuation, const onnx::NodeProto& node, Nodes rest,
                                           Scope* scope, const Wanted& wanted) {
  const std::vector<Continuation*> ends = EndsOf(&continuation);
  repeated_ += ends.size() * rest.size();
  if (repeated_ > kMaxRepeatedNodes) {
    return Fail(StatusCode::kUnsupported,
                fmt::format("{}: its outputs' ranks depend on its condition, and on so many others that more "
                            "than {} nodes would be compiled for one rank after another; fix dimensions "
                            "with --dim",
                            NodeText(node), kMaxRepeatedNodes));
  }
  const bool nested = std::exchange(at_ends_, true);
  bool all_fail = true;
  for (Continuation* end : ends) {
    if (end->failure) continue;
    Scope inner = InnerScope(*scope);
    for (int i = 0; i < node.output_size(); ++i) {
      const auto at = static_cast<std::size_t>(i);
      if (!node.output(i).empty() && at < end->results.size()) inner.names[node.output(i)] = end->results[at];
    }
    Block* around = SwapBlock(end->block);
    Result<Continuation> after = LowerFrom(rest, &inner, wanted);
    SwapBlock(around);
    if (!after) {
      at_ends_ = nested;
      return after;
    }
    *end = *std::move(after);
    all_fail = all_fail && AllFail(end);
  }
  at_ends_ = nested;
  if (!all_fail || nested) return continuation;
  // No rank will do: the model is wrong, or we are.
  for (const Continuation* end : EndsOf(&continuation)) AddUnsupported(*end->failure);
  Continuation failed;
  failed.block = block_;
  failed.results.assign(wanted.names.size(), poison());
  return failed;
}

Status Lowering::Deliver(Op* op, Continuation continuation) {
  const std::vector<Continuation*> ends = EndsOf(&continuation);
  for (const Continuation* end : ends) {
    if (std::any_of(end->results.begin(), end->results.end(), [&](Value* v) { return IsPoison(v); })) {
      for (int i = 0; i < op->outputs(); ++i) op->Set(i, poison());
      return {};
    }
  }
  if (AllFail(&continuation)) {
    failure_ = ends.front()->failure;
    return {};
  }
  if (!SameRanks(&continuation)) {
    open_ = std::move(continuation);
    return {};
  }
  Result<std::vector<Value*>> results = JoinStrings(&continuation);
  if (!results) return Forward(results);
  for (std::size_t i = 0; i < results->size(); ++i) {
    if (continuation.split != nullptr) (*results)[i]->name = op->NextName();
    op->Set(static_cast<int>(i), (*results)[i]);
  }
  return {};
}

Result<std::vector<Value*>> Lowering::JoinStrings(Continuation* continuation) {
  std::vector<Continuation*> ends = EndsOf(continuation);
  std::erase_if(ends, [](const Continuation* end) { return end->failure.has_value(); });
  // Join refuses values that do not fit.
  const bool fits =
      continuation->split != nullptr && !ends.empty() &&
      std::all_of(ends.begin(), ends.end(), [&](const Continuation* end) {
        return end->results.size() == ends.front()->results.size() &&
               std::none_of(end->results.begin(), end->results.end(), [&](Value* v) { return IsPoison(v); });
      });
  if (!fits) return Join(continuation);
  const std::size_t count = ends.front()->results.size();
  std::vector<std::size_t> of_strings;
  for (std::size_t i = 0; i < count; ++i) {
    const auto are_strings = std::count_if(
        ends.begin(), ends.end(), [&](const Continuation* end) { return strings_.Has(end->results[i]); });
    if (are_strings == 0) continue;
    if (are_strings != std::ssize(ends))
      return Fail(StatusCode::kUnsupported, fmt::format("output {} is strings in one branch alone", i));
    of_strings.push_back(i);
    // Each end brings its list, behind all results.
    for (Continuation* end : ends) {
      const StringList list = ListOf(end->results[i]);
      end->results.insert(end->results.end(), {list.offsets, list.bytes});
    }
  }
  Result<std::vector<Value*>> results = Join(continuation);
  if (!results || of_strings.empty()) return results;
  for (std::size_t i = 0; i < of_strings.size(); ++i) {
    Value** list = results->data() + count + 2 * i;
    strings_.Set((*results)[of_strings[i]], StringList{list[0], list[1]});
  }
  results->resize(count);
  return results;
}

Result<std::vector<Value*>> Lowering::Join(Continuation* continuation) {
  if (continuation->failure) return Fail(StatusCode::kInvalidFile, FailureText(*continuation->failure));
  if (continuation->split == nullptr) return continuation->results;
  Node* node = continuation->split;
  const std::vector<Value*>* sides[2] = {};
  Status failed;
  for (const std::size_t branch : {0, 1}) {
    Block& block = node->blocks[branch];
    Result<std::vector<Value*>> results = Join(&continuation->branches[branch]);
    if (results) {
      block.results = *std::move(results);
      sides[branch] = &block.results;
    } else if (results.error().code() == StatusCode::kInvalidFile) {
      block.failure = results.error().message();
      failed = Forward(results);
    } else {
      return results;
    }
  }
  if (sides[0] == nullptr && sides[1] == nullptr) return Forward(failed);
  const std::vector<Value*>& then = *(sides[0] != nullptr ? sides[0] : sides[1]);
  const std::vector<Value*>& otherwise = *(sides[1] != nullptr ? sides[1] : sides[0]);
  if (then.size() != otherwise.size()) {
    return Fail(StatusCode::kUnsupported,
                fmt::format("its branches have {} and {} outputs", then.size(), otherwise.size()));
  }
  for (std::size_t i = 0; i < then.size(); ++i) {
    if (IsPoison(then[i]) || IsPoison(otherwise[i])) {
      return std::vector<Value*>(then.size(), poison());
    }
    std::optional<Type> type =
        CommonType(then[i]->type, otherwise[i]->type, [&] { return graph_.FreshSymbol(""); });
    if (!type) {
      return Fail(StatusCode::kUnsupported,
                  fmt::format("output {} is {} in one branch and {} in the other", i, TypeText(then[i]->type),
                              TypeText(otherwise[i]->type)));
    }
    // The symbols of a branch stand for nothing behind it.
    if (&then == &otherwise) type = graph_.WithFreshDims(*std::move(type));
    Value* output = graph_.NewValue(then[i]->name, *std::move(type));
    output->producer = node;
    node->outputs.push_back(output);
    Define(output);
  }
  return node->outputs;
}

}  // namespace rewire::compiler
