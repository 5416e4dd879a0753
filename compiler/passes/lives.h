// SPDX-License-Identifier: Apache-2.0
// How long values live: what passes that give memory to values have to know.
//
// Nodes have places in the order in which they are emitted, so a life is a stretch of places. A node with
// blocks takes a place before them and one behind: what comes from outside and is read in them lives to the
// latter, as a loop's body may read it again.
#pragma once

#include <cstddef>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "compiler/ir/graph.h"

namespace rewire::compiler {

class Lives {
 public:
  // The graph must not change as long as this is asked.
  explicit Lives(const Graph& graph);

  // Where the node's kernel runs, or where its blocks begin.
  std::size_t PlaceOf(const Node* node) const { return spans_.at(node).begin; }
  // No place lies behind it.
  std::size_t last_place() const { return next_; }
  // The place of the last read, through any view too; where a value is made that nothing reads.
  std::size_t EndOf(const Value* value) const;
  // Whether the memory has to be the value's own: it leaves a branch or a turn of a loop, is the function's
  // result, or something may hold it that is not followed (an ADT, what a kernel returns).
  bool IsKept(const Value* value) const { return kept_.contains(MemoryOf(value)); }
  // Whether other values may lie in the same memory.
  bool IsShared(const Value* value) const { return shared_.contains(value); }
  // Whether the node, of the same block as the value's maker, is the last to read it.
  bool DiesAt(const Value* value, const Node* node) const;

 private:
  struct Span {
    std::size_t begin = 0;
    std::size_t end = 0;
  };
  // Nodes of the blocks around the place that is being looked at, outermost first.
  struct Level {
    const Block* block;
    const Node* node;
  };

  void Walk(const Block& block);
  void WalkNode(const Node& node);
  void Read(const Value* value);
  // `forever`: nothing says for how long.
  void Keep(const Value* value, bool forever);
  // The value may leave a block as this output of its node.
  void Become(const Value* value, const Value* output);
  // Both may lie in one memory.
  void Share(const Value* a, const Value* b);
  // The value that stands for all that lie in the same memory.
  const Value* MemoryOf(const Value* value) const;

  std::vector<Level> path_;
  std::size_t next_ = 0;
  std::unordered_map<const Node*, Span> spans_;
  std::unordered_map<const Value*, const Block*> home_;
  std::unordered_map<const Value*, const Node*> last_;          // of its own block
  std::unordered_map<const Value*, const Value*> shared_with_;  // towards MemoryOf
  std::unordered_map<const Value*, std::size_t> ends_;          // by MemoryOf
  std::unordered_set<const Value*> kept_, forever_, shared_;
};

}  // namespace rewire::compiler
