// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/passes/parallel/branch_call.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "rewire/base/utf8.h"
#include "rewire/compiler/ir/kernel_traits.h"
#include "rewire/kernels/contract/branches.h"

namespace rewire::compiler {
namespace {

constexpr std::size_t kMostSourceBytes = 200;  // of a node, in front of its errors

}  // namespace

ValueUses::ValueUses(const Graph& graph) {
  const auto walk = [this](const auto& self, const Block& block) -> void {
    for (const Node* node : block.nodes) {
      for (const Value* input : node->inputs) uses_[input].push_back(node);
      for (const Node::Extent& extent : node->extents) uses_[extent.shape].push_back(nullptr);
      for (const Block& inner : node->blocks) self(self, inner);
    }
    for (const Value* result : block.results) uses_[result].push_back(nullptr);
  };
  walk(walk, graph.main);
}

const std::vector<const Node*>& ValueUses::Of(const Value* value) const {
  static const std::vector<const Node*> kNone;
  const auto found = uses_.find(value);
  return found == uses_.end() ? kNone : found->second;
}

void CallList::Append(const Node& node, std::size_t branch, const std::vector<std::int64_t>& arguments) {
  calls_.push_back(static_cast<std::int64_t>(branch));
  calls_.push_back(static_cast<std::int64_t>(arguments.size()));
  calls_.insert(calls_.end(), arguments.begin(), arguments.end());
  if (count_ > 0) {
    kernels_ += ' ';
    nodes_ += '\n';
  }
  kernels_ += node.kernel;
  nodes_ += Printable(node.source, kMostSourceBytes);
  for (const Attribute& attribute : node.attributes)
    of_calls_.push_back({fmt::format("{}.{}", count_, attribute.name), attribute.value});
  ++count_;
}

std::vector<Attribute> CallList::ToAttributes(std::size_t inputs, const std::vector<std::int64_t>& outputs,
                                              const std::vector<std::int64_t>& views) const {
  const auto list = [](const std::vector<std::int64_t>& numbers) {
    return Array<std::int64_t>(numbers.begin(), numbers.end());
  };
  std::vector<Attribute> attributes = {{"inputs", static_cast<std::int64_t>(inputs)},
                                       {"outputs", list(outputs)},
                                       {"kernels", kernels_},
                                       {"calls", list(calls_)}};
  if (!views.empty()) attributes.push_back({"views", list(views)});
  attributes.push_back({"debug.nodes", nodes_});
  attributes.insert(attributes.end(), of_calls_.begin(), of_calls_.end());
  return attributes;
}

BranchCall::BranchCall(Graph* graph, const ValueUses& uses, const Block& block, const BranchGroup& group)
    : graph_(*graph), uses_(uses), node_(graph->NewNode(NodeKind::kKernel)) {
  std::vector<std::pair<const Node*, std::size_t>> kernels;
  for (std::size_t i = group.begin; i < group.end; ++i) {
    Node* node = block.nodes[i];
    members_.insert(node);
    if (node->kind == NodeKind::kKernel) {
      kernels.emplace_back(node, group.branch[i - group.begin]);
    } else {
      views_.push_back(node);
    }
  }
  // The outputs of a branch then lie beside those of the next one, which mostly the same thread runs. Two
  // threads that write side by side would take cache lines from each other.
  std::stable_sort(kernels.begin(), kernels.end(),
                   [](const auto& a, const auto& b) { return a.second < b.second; });
  for (const auto& [node, branch] : kernels) {
    for (Value* input : node->inputs) AddInput(input);
    AddOutputs(*node, branch);
    done_.insert(node);
    FreeUnread();
  }
  std::vector<std::int64_t> outputs;
  for (const Slot& slot : slots_) outputs.push_back(static_cast<std::int64_t>(slot.branch));
  std::vector<std::int64_t> views;
  for (Value* value : shown_) {
    const std::vector<std::int64_t> dims = *ConstantDims(value->type.dims);
    views.push_back(ArgumentOf(MemoryOf(value)));
    views.push_back(static_cast<std::int64_t>(dims.size()));
    views.insert(views.end(), dims.begin(), dims.end());
  }
  CallList calls;
  for (const auto& [node, branch] : kernels) {
    std::vector<std::int64_t> arguments;
    for (const Value* input : node->inputs) arguments.push_back(ArgumentOf(input));
    for (const Value* output : node->outputs) arguments.push_back(ArgumentOf(output));
    calls.Append(*node, branch, arguments);
  }
  node_->kernel = names::kBranches;
  node_->attributes = calls.ToAttributes(node_->inputs.size(), outputs, views);
  node_->source = fmt::format("{} and {} more in {} branches", kernels.front().first->source,
                              kernels.size() - 1, group.branches);
}

Value* BranchCall::MemoryOf(Value* value) const {
  while (value->producer != nullptr && value->producer->kind == NodeKind::kReshape &&
         members_.contains(value->producer)) {
    value = value->producer->inputs[0];
  }
  return value;
}

void BranchCall::AddInput(Value* value) {
  Value* memory = MemoryOf(value);
  if (memory != value && numbers_.try_emplace(value, shown_.size()).second) shown_.push_back(value);
  if (outputs_.contains(memory)) return;
  if (inputs_.try_emplace(memory, inputs_.size()).second) node_->inputs.push_back(memory);
}

void BranchCall::AddOutputs(const Node& node, std::size_t branch) {
  if (const Value* over = InputToWriteOver(node); over != nullptr) {
    Put(node.outputs[0], outputs_.at(over));
    return;
  }
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    Value* output = node.outputs[i];
    const auto dims = ConstantDims(node.extents[i].dims);
    const auto fits = [&](const Slot& slot) {
      const Value* before = node_->outputs[static_cast<std::size_t>(&slot - slots_.data())];
      return slot.free && slot.branch == branch && before->type.dtype == output->type.dtype &&
             ConstantDims(before->type.dims) == dims;
    };
    const auto slot = std::find_if(slots_.begin(), slots_.end(), fits);
    if (slot == slots_.end()) {
      slots_.push_back({branch, false});
      node_->outputs.push_back(nullptr);
      node_->extents.push_back(node.extents[i]);
      Put(output, slots_.size() - 1);
    } else {
      Put(output, static_cast<std::size_t>(slot - slots_.begin()));
    }
  }
}

void BranchCall::Put(Value* value, std::size_t slot) {
  outputs_[value] = slot;
  node_->outputs[slot] = value;
  slots_[slot].free = false;
}

void BranchCall::FreeUnread() {
  for (std::size_t i = 0; i < slots_.size(); ++i) slots_[i].free = !IsStillRead(node_->outputs[i]);
}

// Whether anything but the calls so far reads the value, or a view of it.
bool BranchCall::IsStillRead(const Value* value) const {
  const std::vector<const Node*>& uses = uses_.Of(value);
  return std::any_of(uses.begin(), uses.end(), [&](const Node* user) {
    if (!members_.contains(user)) return true;
    return user->kind == NodeKind::kReshape ? IsStillRead(user->outputs[0]) : !done_.contains(user);
  });
}

// An input that only this node reads, and that is as large as its output. Null: there is none.
const Value* BranchCall::InputToWriteOver(const Node& node) const {
  const std::uint32_t candidates = InputsToWriteOver(graph_, node);
  for (std::size_t i = 0; i < node.inputs.size() && candidates != 0; ++i) {
    const Value* input = node.inputs[i];
    if ((candidates >> i & 1) == 0 || !outputs_.contains(input)) continue;
    const std::vector<const Node*>& uses = uses_.Of(input);
    bool fits = input->type.dtype == node.outputs[0]->type.dtype &&
                ConstantDims(input->type.dims) == ConstantDims(node.extents[0].dims) &&
                std::all_of(uses.begin(), uses.end(), [&](const Node* user) { return user == &node; });
    for (std::size_t k = 0; k < node.inputs.size(); ++k)
      fits = fits && (node.inputs[k] != input || (candidates >> k & 1) != 0);
    if (fits) return input;
  }
  return nullptr;
}

std::int64_t BranchCall::ArgumentOf(const Value* value) const {
  const auto place = [](std::size_t at) { return static_cast<std::int64_t>(at); };
  if (const auto found = inputs_.find(value); found != inputs_.end()) return place(found->second);
  if (const auto found = outputs_.find(value); found != outputs_.end())
    return place(node_->inputs.size() + found->second);
  return place(node_->inputs.size() + node_->outputs.size() + numbers_.at(value));
}

double BranchCall::overhead() const {
  const auto inputs = static_cast<double>(node_->inputs.size());
  const auto outputs = static_cast<double>(node_->outputs.size());
  return 1.2 * outputs * (inputs + outputs / 2) + 10 * (inputs + outputs);
}

std::uint64_t BranchCall::bytes() const {
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < node_->outputs.size(); ++i) {
    bytes += TensorBytes(node_->outputs[i]->type.dtype, *ConstantDims(node_->extents[i].dims)).value_or(0);
  }
  return bytes;
}

void BranchCall::Store(std::vector<Node*>* nodes) {
  for (Value* output : node_->outputs) output->producer = node_;
  nodes->push_back(node_);
  // Behind it, the last ones first, as they may be views of views.
  std::unordered_set<const Node*> kept;
  for (std::size_t i = views_.size(); i-- > 0;) {
    const std::vector<const Node*>& uses = uses_.Of(views_[i]->outputs[0]);
    if (std::any_of(uses.begin(), uses.end(),
                    [&](const Node* user) { return !members_.contains(user) || kept.contains(user); }))
      kept.insert(views_[i]);
  }
  for (Node* view : views_) {
    if (kept.contains(view)) nodes->push_back(view);
  }
}

}  // namespace rewire::compiler
