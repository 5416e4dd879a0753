// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/passes/match/sources.h"

#include <algorithm>
#include <unordered_set>

#include "rewire/executable_format/names/source_note.h"

namespace rewire::compiler {
namespace {

// No pattern has more nodes. A walk that meets more has left the pattern.
constexpr std::size_t kMostOfPattern = 32;

class Walk {
 public:
  explicit Walk(const std::vector<const Value*>& inputs) : inputs_(inputs) {}

  // Visits what the node is computed from, producers before their users.
  void Visit(const Node& node) {
    for (const Value* input : node.inputs) {
      if (input == nullptr || input->producer == nullptr || input->IsConstant()) continue;
      if (std::find(inputs_.begin(), inputs_.end(), input) != inputs_.end()) continue;
      if (!visited_.insert(input->producer).second || visited_.size() > kMostOfPattern) continue;
      Visit(*input->producer);
      source_ = JoinNotes(source_, input->producer->source);
    }
  }
  bool complete() const { return visited_.size() <= kMostOfPattern; }
  const std::string& source() const { return source_; }

 private:
  const std::vector<const Value*>& inputs_;
  std::unordered_set<const Node*> visited_;
  std::string source_;
};

}  // namespace

void AddSourcesBehind(Node* node, const std::vector<const Value*>& inputs) {
  Walk walk(inputs);
  walk.Visit(*node);
  if (walk.complete()) node->source = JoinNotes(walk.source(), node->source);
}

}  // namespace rewire::compiler
