// SPDX-License-Identifier: Apache-2.0
//
// Whether all that a node reads is there when it runs: inputs, values with sizes, and the values in whose
// shapes the symbols of its sizes stand.
#include <fmt/format.h>

#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "rewire/compiler/passes/check/checks.h"

namespace rewire::compiler {
namespace {

class ReadsCheck {
 public:
  explicit ReadsCheck(const Graph& graph) : graph_(graph) {}

  Status Run() {
    if (!graph_.init.parameters.empty() || !graph_.init.results.empty())
      return Broken(nullptr, nullptr, "a block `init` without parameters and results", "one with such");
    if (Status ok = Walk(graph_.init, nullptr); !ok) return ok;
    // Values that are made once are there in every block.
    open_.insert(&graph_.init);
    if (Status ok = SameCount("inputs", graph_.main.parameters.size(), graph_.input_names.size()); !ok)
      return ok;
    if (Status ok = SameCount("outputs", graph_.main.results.size(), graph_.output_names.size()); !ok)
      return ok;
    return Walk(graph_.main, nullptr);
  }

 private:
  static Status SameCount(const char* what, std::size_t values, std::size_t names) {
    if (values == names) return {};
    return Broken(nullptr, nullptr, fmt::format("a value for each of the {} {}", names, what),
                  std::to_string(values));
  }

  // `around` is the node that the block is of.
  Status Walk(const Block& block, const Node* around) {
    open_.insert(&block);
    for (const Value* parameter : block.parameters) {
      if (Status made = Make(around, parameter, nullptr, block); !made) return made;
    }
    for (const Node* node : block.nodes) {
      if (Status ok = WalkNode(*node, block); !ok) return ok;
    }
    if (!block.failure.empty()) {
      if (!block.results.empty())
        return Broken(around, nullptr, "a branch that fails without results", "one with results");
    }
    const bool loop = around != nullptr && around->kind == NodeKind::kLoop;
    for (std::size_t i = 0; i < block.results.size(); ++i) {
      if (loop && i == 0 && block.results[i] == nullptr) continue;  // a loop without a condition
      if (Status ok = Read(around, block.results[i], fmt::format("result {} of a block", i)); !ok) return ok;
    }
    open_.erase(&block);
    return {};
  }

  Status WalkNode(const Node& node, const Block& block) {
    if (!nodes_.insert(&node).second) return Broken(&node, nullptr, "one place in the graph", "a second one");
    const bool loop = node.kind == NodeKind::kLoop;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (loop && i < 2 && node.inputs[i] == nullptr) continue;  // no bound, or no condition
      if (Status ok = Read(&node, node.inputs[i], fmt::format("input {}", i)); !ok) return ok;
    }
    for (const Node::Extent& extent : node.extents) {
      if (extent.shape != nullptr) {
        if (Status ok = Read(&node, extent.shape, "the value with a size"); !ok) return ok;
      } else if (Status ok = ReadSymbols(node, extent.dims, block); !ok) {
        return ok;
      }
    }
    for (const Block& inner : node.blocks) {
      if (Status ok = Walk(inner, &node); !ok) return ok;
    }
    for (const Value* output : node.outputs) {
      if (Status made = Make(&node, output, &node, block); !made) return made;
    }
    return {};
  }

  Status Make(const Node* node, const Value* value, const Node* producer, const Block& block) {
    if (value == nullptr) return Broken(node, nullptr, "a value for each output and parameter", "none");
    if (value->IsConstant()) return Broken(node, value, "a value that is made during the run", "a constant");
    if (!home_.try_emplace(value, &block).second) return Broken(node, value, "one producer", "a second one");
    if (value->producer == producer) return {};
    return Broken(node, value, producer == nullptr ? "no producer" : "this node as its producer",
                  value->producer == nullptr ? "none" : "another one");
  }

  bool Exists(const Value* value) const {
    const auto home = home_.find(value);
    return home != home_.end() && open_.contains(home->second);
  }

  Status Read(const Node* node, const Value* value, const std::string& what) const {
    if (value == nullptr) return Broken(node, nullptr, "a value as " + what, "none");
    if (value->IsConstant()) {
      if (value->producer == nullptr) return {};
      return Broken(node, value, "a constant without a producer as " + what, "one with a producer");
    }
    if (Exists(value)) return {};
    return Broken(node, value, "a constant, or a value that is made before, as " + what,
                  home_.contains(value)        ? "one of a block that has ended"
                  : value->producer != nullptr ? "one that no node before it makes"
                                               : "one that nothing makes");
  }

  Status ReadSymbols(const Node& node, const Shape& dims, const Block& block) const {
    for (const DimExpr& dim : dims) {
      if (dim.IsConstant()) continue;
      std::set<std::string> names;
      dim.CollectSymbols(&names);
      for (const std::string& name : names) {
        const auto source = graph_.symbols().find(name);
        const Value* value = source == graph_.symbols().end() ? nullptr : source->second.value;
        const std::string expected = fmt::format("a value before it whose shape has the symbol {}", name);
        if (value == nullptr) return Broken(&node, nullptr, expected, "none");
        if (&block == &graph_.init) return Broken(&node, value, "a constant size of what is made once", name);
        if (!Exists(value) || home_.at(value) == &graph_.init)
          return Broken(&node, value, expected, "one that is not made before");
        if (!value->type.IsTensor() || (value->type.ranked && source->second.axis >= value->type.dims.size()))
          return Broken(&node, value, expected, fmt::format("one without axis {}", source->second.axis));
      }
    }
    return {};
  }

  const Graph& graph_;
  std::unordered_map<const Value*, const Block*> home_;  // of values that are made so far
  std::unordered_set<const Block*> open_;                // blocks around the current place
  std::unordered_set<const Node*> nodes_;
};

}  // namespace

Status CheckReads(const Graph& graph) { return ReadsCheck(graph).Run(); }

}  // namespace rewire::compiler
