// SPDX-License-Identifier: Apache-2.0
//
// Writes a group of nodes as one call of rewire.branches.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "rewire/compiler/ir/graph.h"
#include "rewire/compiler/passes/parallel/branch_groups.h"

namespace rewire::compiler {

// Who reads each value of `main`. Null stands for a result of a block and for a size.
class ValueUses {
 public:
  explicit ValueUses(const Graph& graph);
  const std::vector<const Node*>& Of(const Value* value) const;

 private:
  std::unordered_map<const Value*, std::vector<const Node*>> uses_;
};

// The attributes of rewire.branches, which docs/kernels.md explains.
class CallList {
 public:
  // `arguments` are the node's inputs, then its outputs, as places in the arguments of rewire.branches.
  void Append(const Node& node, std::size_t branch, const std::vector<std::int64_t>& arguments);
  // `outputs` are the branches of the outputs.
  std::vector<Attribute> ToAttributes(std::size_t inputs, const std::vector<std::int64_t>& outputs,
                                      const std::vector<std::int64_t>& views) const;

 private:
  std::size_t count_ = 0;
  std::vector<std::int64_t> calls_;
  std::string kernels_, nodes_;
  std::vector<Attribute> of_calls_;
};

// The call for a group. Making it does not change the graph's blocks.
class BranchCall {
 public:
  BranchCall(Graph* graph, const ValueUses& uses, const Block& block, const BranchGroup& group);

  const Node* node() const { return node_; }
  // About the nanoseconds that the call takes beside its kernels: the VM compares what is written with all
  // else.
  double overhead() const;
  // The bytes of all its outputs.
  std::uint64_t bytes() const;
  // Appends the call, and views of its outputs that others read. Values of the group are its outputs now.
  void Store(std::vector<Node*>* nodes);

 private:
  // The value that this one is a view of by nodes of the group, or the value itself.
  Value* MemoryOf(Value* value) const;
  void AddInput(Value* value);
  void AddOutputs(const Node& node, std::size_t branch);
  void Put(Value* value, std::size_t slot);
  void FreeUnread();
  bool IsStillRead(const Value* value) const;
  const Value* InputToWriteOver(const Node& node) const;
  std::int64_t ArgumentOf(const Value* value) const;

  // An output, in which values of one branch may follow each other; the last one is its value.
  struct Slot {
    std::size_t branch = 0;
    bool free = false;  // nothing reads its value any more
  };

  Graph& graph_;
  const ValueUses& uses_;
  std::unordered_set<const Node*> members_, done_;
  std::vector<Slot> slots_;
  std::vector<Node*> views_;   // members that are no kernels
  std::vector<Value*> shown_;  // their outputs that kernels of the group read
  Node* node_;
  // Places among the inputs, the outputs and `shown_`. Values of one slot share an output.
  std::unordered_map<const Value*, std::size_t> inputs_, outputs_, numbers_;
};

}  // namespace rewire::compiler
