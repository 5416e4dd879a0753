// SPDX-License-Identifier: Apache-2.0
// What passes that rewrite patterns share: who uses a value, and changes that keep the graph whole.
#pragma once

#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "compiler/ir/graph.h"

namespace rewire::compiler {

// Made once for a pass; what the pass changes through it is kept up to date.
class Edit {
 public:
  explicit Edit(Graph* graph);

  // The one node that reads the value, when it is read once in all, and not as a result or from a block
  // inside another node than its own; null otherwise.
  Node* OnlyUser(const Value* value) const;
  // How often it is read.
  std::size_t UseCount(const Value* value) const;

  // The node takes over the output of a node behind it, of the same shape; that node is then to be erased.
  // What was the node's own output exists no more.
  void TakeOver(Node* node, Node* user);
  void Erase(Node* node) { erased_.insert(node); }
  bool IsErased(const Node* node) const { return erased_.contains(node); }
  // Takes the erased nodes out of all blocks; last.
  void Finish();

  Graph& graph() { return graph_; }

 private:
  struct Use {
    Node* node = nullptr;  // null: a block's result
    const Block* block = nullptr;
  };
  void Walk(const Block& block);
  void Sweep(Block* block) const;

  Graph& graph_;
  std::unordered_map<const Value*, std::vector<Use>> uses_;
  std::unordered_map<const Node*, const Block*> home_;
  std::unordered_set<const Node*> erased_;
};

// Calls `visit` with every block, inner ones after those around them. Not `init`.
template <typename Visit>
void ForEachBlock(Block* block, const Visit& visit) {
  visit(block);
  for (Node* node : block->nodes) {
    for (Block& inner : node->blocks) ForEachBlock(&inner, visit);
  }
}

const Attribute* FindAttribute(const Node& node, const std::string& name);
std::int64_t IntAttribute(const Node& node, const std::string& name, std::int64_t fallback);
double FloatAttribute(const Node& node, const std::string& name, double fallback);
void SetAttribute(Node* node, const std::string& name, AttributeValue value);

// Input i, null where it is left out or stands as a tensor without elements.
Value* OptionalInput(const Node& node, std::size_t i);

// A constant f32 tensor's elements; null for anything else.
const float* FloatsOf(const Value* value);
// The one element of a constant f32 tensor, if that is what it is.
std::optional<float> ScalarOf(const Value* value);
// A new constant f32 tensor.
Value* NewFloats(Graph* graph, const std::string& name, const std::vector<std::int64_t>& dims,
                 const std::vector<float>& elements);
// The elements of a constant that has one for each channel of a tensor of rank `rank` with `channels` of them
// at `axis`: its shape is 1 elsewhere, as broadcasting aligns it. One element stands for all. Nothing
// otherwise.
std::optional<std::vector<float>> PerChannel(const Value* value, int rank, int axis, std::int64_t channels);

}  // namespace rewire::compiler
