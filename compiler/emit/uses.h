// SPDX-License-Identifier: Apache-2.0
//
// Emission must know beforehand where each value is used last, and which symbols are read.
#pragma once

#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "rewire/compiler/ir/graph.h"

namespace rewire::compiler {

class Uses {
 public:
  explicit Uses(const Graph& graph);

  // The values of the block (its parameters and outputs of its nodes) that nothing reads after node `index`.
  // A value that is never read dies where it is made.
  const std::vector<const Value*>& DyingAfter(const Block& block, std::size_t index) const;
  // Constants that something reads, in the order of their first use.
  const std::vector<const Value*>& constants() const { return constants_; }
  // Values that no node of `main` makes, in the order of their first use: computed constants.
  const std::vector<const Value*>& computed() const { return computed_; }
  // True if a dimension of an allocation is computed from the symbol.
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
