// SPDX-License-Identifier: Apache-2.0
//
// Passes that rewrite patterns share this: who uses a value, and changes that keep the graph consistent.
#pragma once

#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "rewire/compiler/ir/graph.h"

namespace rewire::compiler {

// Make one per pass. Changes that the pass makes through it are tracked.
class Edit {
 public:
  explicit Edit(Graph* graph);

  // The only node that reads the value. Null if it is read more than once, as a result, or from a block
  // inside another node than its own.
  Node* OnlyUser(const Value* value) const;
  // How often it is read.
  std::size_t UseCount(const Value* value) const;

  // Gives the node the output of a later node, which has the same shape, and erases the later node. The
  // node's former output no longer exists.
  void TakeOver(Node* node, Node* user);
  // Erases a node whose work `last` does from now on. `last` comes later and, where their outputs have the
  // same shape, takes over the expressions of it.
  void Absorb(Node* passed, Node* last);
  void Erase(Node* node) { erased_.insert(node); }
  bool IsErased(const Node* node) const { return erased_.contains(node); }
  // Removes the erased nodes from all blocks. Call it last.
  void Finish();

  Graph& graph() { return graph_; }

 private:
  struct Use {
    Node* node = nullptr;  // null: it is a block's result
    const Block* block = nullptr;
  };
  void Walk(const Block& block);
  void Sweep(Block* block) const;

  Graph& graph_;
  std::unordered_map<const Value*, std::vector<Use>> uses_;
  std::unordered_map<const Node*, const Block*> home_;
  std::unordered_set<const Node*> erased_;
};

// Calls `visit` with every block except `init`, outer blocks before inner ones.
template <typename Visit>
void ForEachBlock(Block* block, const Visit& visit) {
  visit(block);
  for (Node* node : block->nodes) {
    for (Block& inner : node->blocks) ForEachBlock(&inner, visit);
  }
}

const Attribute* FindAttribute(const Node& node, const std::string& name);
std::int64_t IntAttribute(const Node& node, const std::string& name, std::int64_t fallback);
std::optional<std::vector<std::int64_t>> IntsAttribute(const Node& node, const std::string& name);
double FloatAttribute(const Node& node, const std::string& name, double fallback);
void SetAttribute(Node* node, const std::string& name, AttributeValue value);

// Input i; null if it is left out or is a tensor without elements.
Value* OptionalInput(const Node& node, std::size_t i);

// Whether the value is a constant of f32. Its elements may be those of a constant at load.
bool IsFloats(const Value* value);
// The elements of a constant f32 tensor that are known while compiling; null for anything else.
const float* FloatsOf(const Value* value);
// The same. Marks the parameters that the elements depend on as wanted (ElementsOf).
const float* WantedFloatsOf(const Value* value);
// The element of a constant f32 tensor with exactly one element.
std::optional<float> ScalarOf(const Value* value);
// The call of this kernel that gives the value; null if it is given by something else.
const Node* ProducerOf(const Value* value, const char* kernel);
// The factor that a product or quotient with a scalar makes of `*value`, which becomes what is multiplied.
// The scaled value must have no other use. `rounding`, if given, becomes that of the scalar.
std::optional<double> TakeScalar(const Edit& edit, Value** value, double* rounding = nullptr);
// By how much, in parts of itself, a constant may differ from what its writer meant: 0, or more when it had
// 16 bits and was cast to f32.
double RoundingOf(const Value* value);
// True if the constant is f16 that was cast to f32, and moved at most.
bool IsWidenedF16(const Value* value);
// A new constant f32 tensor.
Value* NewFloats(Graph* graph, const std::string& name, const std::vector<std::int64_t>& dims,
                 const std::vector<float>& elements);
// The f32 of a constant of 16-bit floats, as if a cast of the model had been folded.
Value* NewWidened(Graph* graph, Value* half);
// NewFloats of elements that a pass has computed from `origin`. If that is f16 that was cast, the elements
// are rounded to f16 again, so that they stay as small. They are not if they would lose more than f16 does
// elsewhere, or under Graph::strict.
Value* NewFloatsFrom(Graph* graph, const Value* origin, const std::vector<std::int64_t>& dims,
                     const std::vector<float>& elements);
// The elements of a constant with one element per channel. The tensor has rank `rank` and `channels` channels
// at `axis`. The constant's shape must be 1 elsewhere, as broadcasting aligns it; a single element counts for
// all channels. nullopt otherwise. Marks parameters as wanted.
std::optional<std::vector<float>> PerChannel(const Value* value, int rank, int axis, std::int64_t channels);
// The same as a constant [channels], which is one at load if `value` is. Null where PerChannel gives nullopt,
// and for a single element at load.
Value* ChannelVector(Graph* graph, Value* value, int rank, int axis, std::int64_t channels);

// The f32 result, of these dimensions, of a kernel of constants, at least one of which is a constant at load.
// Programs compute it when they are linked.
Value* FoldedAtLoad(Graph* graph, const char* kernel, std::vector<Value*> inputs,
                    const std::vector<std::int64_t>& dims, std::vector<Attribute> attributes = {});
// Row `part` of a constant at load, without the first axis.
Value* PartAtLoad(Graph* graph, Value* value, std::int64_t part);

}  // namespace rewire::compiler
