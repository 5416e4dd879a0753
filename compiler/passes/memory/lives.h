// SPDX-License-Identifier: Apache-2.0
//
// How long values live. Passes that place values in memory need this.
//
// Nodes have places (numbers) in the order in which they are emitted. So a life is a range of places. A node
// with blocks has one place before its blocks and one behind. A value from outside that the blocks read lives
// until the place behind, because a loop's body may read it again.
#pragma once

#include <cstddef>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "rewire/compiler/ir/graph.h"

namespace rewire::compiler {

class Lives {
 public:
  // The graph must not change while this object is used.
  explicit Lives(const Graph& graph);

  // The place where the node's kernel runs, or where its blocks begin.
  std::size_t PlaceOf(const Node* node) const { return spans_.at(node).begin; }
  // The highest place.
  std::size_t last_place() const { return next_; }
  // The place of the last read, also through views. For a value that nothing reads, the place where it is
  // made.
  std::size_t EndOf(const Value* value) const;
  // True if the value must have its own memory. This is so for the function's result and for values that
  // leave a branch or an iteration of a loop. It is also so if something untracked may hold the value: an ADT
  // or a kernel's return value.
  bool IsKept(const Value* value) const { return kept_.contains(MemoryOf(value)); }
  // True if other values may lie in the same memory.
  bool IsShared(const Value* value) const { return shared_.contains(value); }
  // True if the node is the last to read the value. Both must be in the same block.
  bool DiesAt(const Value* value, const Node* node) const;

 private:
  struct Span {
    std::size_t begin = 0;
    std::size_t end = 0;
  };
  // A node whose block contains the current place; outermost first.
  struct Level {
    const Block* block;
    const Node* node;
  };

  void Walk(const Block& block);
  void WalkNode(const Node& node);
  void Read(const Value* value);
  // `forever`: it is unknown how long the value is kept.
  void Keep(const Value* value, bool forever);
  // The value may leave a block as this output of the block's node.
  void Become(const Value* value, const Value* output);
  // Both values may lie in the same memory.
  void Share(const Value* a, const Value* b);
  // The representative of all values that lie in the same memory, once all that share are known.
  const Value* MemoryOf(const Value* value) const;
  // The same before that.
  const Value* RootOf(const Value* value);

  std::vector<Level> path_;
  std::size_t next_ = 0;
  std::unordered_map<const Node*, Span> spans_;
  std::unordered_map<const Value*, const Block*> home_;
  std::unordered_map<const Value*, const Node*> last_;          // of its own block
  std::unordered_map<const Value*, const Value*> shared_with_;  // towards RootOf, then MemoryOf
  std::unordered_map<const Value*, std::size_t> ends_;          // by MemoryOf
  std::unordered_set<const Value*> kept_, forever_, shared_;
};

}  // namespace rewire::compiler
