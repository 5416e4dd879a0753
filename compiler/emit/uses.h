// SPDX-License-Identifier: Apache-2.0
// What emission has to know beforehand: where a value is used last, and which symbols are read.
#pragma once

#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "compiler/ir/graph.h"

namespace rewire::compiler {

class Uses {
 public:
  explicit Uses(const Graph& graph);

  // The values that were defined in the block (its parameters and its nodes' outputs) and that nothing reads
  // after node `index` of it. A value that is never read dies where it is made.
  const std::vector<const Value*>& DyingAfter(const Block& block, std::size_t index) const;
  // Constants that something reads, in the order of their first use.
  const std::vector<const Value*>& constants() const { return constants_; }
  // Values that nothing in `main` makes, in that order too: computed constants.
  const std::vector<const Value*>& computed() const { return computed_; }
  // Whether a dimension of what is allocated is computed from the symbol.
  bool NeedsSymbol(const std::string& name) const { return symbols_.contains(name); }

 private:
  void Walk(const Block& block);
  void Read(const Value* value);

  struct BlockUses {
    std::unordered_map<const Value*, std::size_t> last;  // node index + 1; 0: never read
    std::vector<std::vector<const Value*>> dying;
  };
  std::unordered_map<const Block*, BlockUses> blocks_;
  std::vector<std::pair<const Block*, std::size_t>> path_;  // the blocks being walked, and at which node
  std::unordered_map<const Value*, const Block*> home_;
  std::set<const Value*> seen_constants_;
  std::vector<const Value*> constants_, computed_;
  std::set<std::string> symbols_;
};

}  // namespace rewire::compiler
