// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "rewire/compiler/ir/kernel_traits.h"
#include "rewire/compiler/ir/text.h"
#include "rewire/compiler/passes/edit.h"
#include "rewire/compiler/passes/passes.h"

namespace rewire::compiler {
namespace {

class Sharing {
 public:
  explicit Sharing(Graph* graph) : graph_(*graph) {}

  void ShareNodes() {
    Run(&graph_.main);
    graph_.MoveSymbols(merged_);
  }

  void ShareConstants() {
    FindEqualConstants(graph_.init);
    ForEachBlock(&graph_.main, [&](Block* block) { FindEqualConstants(*block); });
    runs_once_ = true;
    Run(&graph_.init);
    ForEachBlock(&graph_.main, [&](Block* block) {
      for (Node* node : block->nodes) ReadRepresentatives(node);
      for (Value*& result : block->results) result = Representative(result);
    });
    graph_.MoveSymbols(merged_);
  }

 private:
  void Run(Block* block) {
    known_.emplace_back();
    std::vector<Node*> kept;
    for (Node* node : block->nodes) {
      ReadRepresentatives(node);
      for (Block& inner : node->blocks) Run(&inner);
      const Node* same = Find(*node);
      if (same == nullptr) {
        kept.push_back(node);
        continue;
      }
      for (std::size_t i = 0; i < node->outputs.size(); ++i) merged_[node->outputs[i]] = same->outputs[i];
    }
    block->nodes = std::move(kept);
    for (Value*& result : block->results) result = Representative(result);
    known_.pop_back();
  }

  void ReadRepresentatives(Node* node) const {
    for (Value*& input : node->inputs) input = Representative(input);
    for (Node::Extent& extent : node->extents) extent.shape = Representative(extent.shape);
  }

  void FindEqualConstants(const Block& block) {
    for (const Node* node : block.nodes) {
      for (Value* input : node->inputs) FindEqualConstant(input);
    }
  }

  // A user may replace a constant by its name, so those of different names stay apart. This also means that
  // few are compared.
  void FindEqualConstant(Value* value) {
    if (value == nullptr || !value->IsConstant() || value->at_load || merged_.contains(value)) return;
    std::vector<Value*>& others = constants_[value->name];
    const auto equal = std::find_if(others.begin(), others.end(), [&](const Value* other) {
      return HaveEqualElements(*value->constant, *other->constant);
    });
    if (equal == others.end()) {
      others.push_back(value);
    } else if (*equal != value) {
      merged_[value] = *equal;
    }
  }

  static bool HaveEqualElements(const HostTensor& a, const HostTensor& b) {
    const Span<const std::byte> ours = a.bytes.view, theirs = b.bytes.view;
    if (!(a.dtype == b.dtype) || a.shape != b.shape || ours.size() != theirs.size()) return false;
    return ours.data() == theirs.data() || std::equal(ours.begin(), ours.end(), theirs.begin());
  }

  Value* Representative(Value* value) const {
    const auto found = merged_.find(value);
    return found == merged_.end() ? value : found->second;
  }

  // The same for values that are the same: one value, or small constants with equal elements.
  static std::string NameOf(const Value* value) {
    constexpr std::size_t kSmall = 64;
    if (value == nullptr || !value->IsConstant() || value->at_load ||
        value->constant->bytes.view.size() > kSmall)
      return std::to_string(reinterpret_cast<std::uintptr_t>(value));
    const auto bytes = value->constant->bytes.view;
    return TypeText(value->type) + ":" +
           std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }

  // The node seen before, in this block or one around it, that computes the same; otherwise this one is
  // remembered.
  const Node* Find(const Node& node) {
    // A returned tensor's dimensions are symbols of its own: two of them are not seen to be the same.
    const bool may_differ = !runs_once_ && (node.returns || !IsPure(graph_, node));
    if (!node.blocks.empty() || may_differ) return nullptr;
    std::string key = OperationText(node);
    for (const Value* input : node.inputs) key += "|" + NameOf(input);
    for (std::size_t i = 0; i < node.extents.size(); ++i) {
      const Node::Extent& extent = node.extents[i];
      key += "|" + (extent.shape == nullptr ? ShapeText(extent.dims)
                                            : std::to_string(reinterpret_cast<std::uintptr_t>(extent.shape)));
      key += DTypeName(node.outputs[i]->type.dtype);
    }
    // Empty sequences of different elements are made of the same inputs: none.
    for (const Value* output : node.outputs) {
      if (!output->type.IsTensor()) key += "|" + TypeText(output->type);
    }
    for (const std::map<std::string, const Node*>& scope : known_) {
      const auto found = scope.find(key);
      if (found != scope.end()) return found->second;
    }
    known_.back().emplace(std::move(key), &node);
    return nullptr;
  }

  Graph& graph_;
  bool runs_once_ = false;  // the nodes that are compared
  std::vector<std::map<std::string, const Node*>> known_;
  std::unordered_map<std::string, std::vector<Value*>> constants_;  // by name, those that are not merged
  std::unordered_map<const Value*, Value*> merged_;
};

}  // namespace

void ShareCommonSubexpressions(Graph* graph) { Sharing(graph).ShareNodes(); }

void ShareConstants(Graph* graph) { Sharing(graph).ShareConstants(); }

}  // namespace rewire::compiler
