// SPDX-License-Identifier: Apache-2.0
#include <unordered_map>

#include "rewire/compiler/ir/graph.h"

namespace rewire::compiler {
namespace {

// Replaces pointers into the original by those into the copy.
class CopiedPointers {
 public:
  void Add(const Value& from, Value* to) { values_.emplace(&from, to); }
  void Add(const Node& from, Node* to) { nodes_.emplace(&from, to); }

  Value* Of(const Value* value) const { return value != nullptr ? values_.at(value) : nullptr; }
  Node* Of(const Node* node) const { return node != nullptr ? nodes_.at(node) : nullptr; }

  void Replace(std::vector<Value*>* values) const {
    for (Value*& value : *values) value = Of(value);
  }
  void Replace(Block* block) const {
    Replace(&block->parameters);
    Replace(&block->results);
    for (Node*& node : block->nodes) node = Of(node);
  }

 private:
  std::unordered_map<const Value*, Value*> values_;
  std::unordered_map<const Node*, Node*> nodes_;
};

}  // namespace

Graph Graph::Copy() const {
  Graph copy;
  copy.main = main;
  copy.init = init;
  copy.kernels = kernels;
  copy.device = device;
  copy.strict = strict;
  copy.bf16 = bf16;
  copy.tiles = tiles;
  copy.parameters = parameters;
  copy.input_names = input_names;
  copy.output_names = output_names;
  copy.max_dims = max_dims;
  copy.symbols_ = symbols_;
  copy.next_symbol_ = next_symbol_;
  copy.values_ = values_;
  copy.nodes_ = nodes_;
  CopiedPointers pointers;
  for (std::size_t i = 0; i < values_.size(); ++i) pointers.Add(values_[i], &copy.values_[i]);
  for (std::size_t i = 0; i < nodes_.size(); ++i) pointers.Add(nodes_[i], &copy.nodes_[i]);
  for (Value& value : copy.values_) {
    value.producer = pointers.Of(value.producer);
    value.folded = pointers.Of(value.folded);
  }
  for (Node& node : copy.nodes_) {
    pointers.Replace(&node.inputs);
    pointers.Replace(&node.outputs);
    for (Node::Extent& extent : node.extents) extent.shape = pointers.Of(extent.shape);
    for (Block& block : node.blocks) pointers.Replace(&block);
  }
  pointers.Replace(&copy.main);
  pointers.Replace(&copy.init);
  for (Parameter& parameter : copy.parameters) parameter.value = pointers.Of(parameter.value);
  for (auto& [name, source] : copy.symbols_) source.value = pointers.Of(source.value);
  return copy;
}

}  // namespace rewire::compiler
