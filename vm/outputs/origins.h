// SPDX-License-Identifier: Apache-2.0
// Where values come from: for every function, which instructions can have made the tensors that it returns.
//
// An abstract interpretation with allocation sites: a register's abstract value is a set of origins, joined
// where paths meet, with ADTs seen through by site and calls by a summary of the callee. Sets only ever grow
// too large, so what is not in a set cannot be in the register.
#pragma once

#include <cstdint>

#include "base/array.h"
#include "base/span.h"
#include "executable_format/module.h"
#include "vm/outputs/control_flow.h"

namespace rewire {

struct Origin {
  enum Kind : std::uint8_t {
    kAlloc,     // the tensor that the instruction at `pc` makes
    kCallLeaf,  // a tensor that the callee of the Invoke at `pc` makes and returns as its leaf `index`
    kTuple,     // the ADT or closure that the instruction at `pc` makes; of an Invoke, node `index` of its
                // result
    kInput,     // anything that input `index` holds
    kConstant,
    kScalar,   // integers, shapes of nothing, storages: no tensor with memory of its own
    kUnknown,  // a kernel's return value, a closure's: may hold whatever else is in the set
  };
  Kind kind;
  std::uint32_t pc = 0;
  std::uint32_t index = 0;

  bool operator<(const Origin& other) const {
    if (kind != other.kind) return kind < other.kind;
    return pc != other.pc ? pc < other.pc : index < other.index;
  }
};

using OriginId = std::uint32_t;
// A set of origins, interned: equal sets have equal numbers. 0 is the empty set.
using OriginSet = std::uint32_t;

// Numbers in the order of first sight for whatever its user keeps beside it: open addressing, never shrunk.
class InternIndex {
 public:
  // The number of the entry with this hash for which equal(number) holds; otherwise `next` after noting it.
  template <typename Equal>
  std::uint32_t FindOrAdd(std::size_t hash, std::uint32_t next, Equal equal) {
    if (std::size_t{next} * 2 >= slots_.size()) Grow();
    const std::size_t mask = slots_.size() - 1;
    for (std::size_t i = hash & mask;; i = (i + 1) & mask) {
      if (slots_[i].number == kFree) {
        slots_[i] = {hash, next};
        return next;
      }
      if (slots_[i].hash == hash && equal(slots_[i].number)) return slots_[i].number;
    }
  }

 private:
  static constexpr std::uint32_t kFree = 0xFFFFFFFFu;
  struct Slot {
    std::size_t hash = 0;
    std::uint32_t number = kFree;
  };
  void Grow();

  Array<Slot> slots_;
};

// Interns origins and sets of one function.
class OriginTable {
 public:
  OriginTable();
  OriginId Id(const Origin& origin);
  const Origin& Get(OriginId id) const { return origins_[id]; }
  OriginSet Single(const Origin& origin) { return Intern({Id(origin)}); }
  OriginSet Union(OriginSet a, OriginSet b);
  OriginSet Without(OriginSet set, OriginId id);
  // They stay where they are while sets are added.
  Span<const OriginId> Members(OriginSet set) const { return sets_[set]; }
  OriginSet Intern(Array<OriginId> members);  // sorted, unique

  // The fields that a tuple may hold; grow with AddField.
  const Array<OriginSet>& Fields(OriginId tuple) const;
  // True when the tuple changed.
  bool AddField(OriginId tuple, std::uint32_t index, OriginSet set);

  // Everything in the set and everything reachable from its tuples.
  OriginSet Reach(OriginSet set);

 private:
  Array<Origin> origins_;
  InternIndex ids_;
  Array<Array<OriginId>> sets_;
  InternIndex set_ids_;
  Array<Array<OriginSet>> fields_;  // by origin
};

// A flag for each origin, clear until set.
class OriginFlags {
 public:
  bool Has(OriginId id) const { return id < flags_.size() && flags_[id] != 0; }
  void Set(OriginId id) {
    if (id >= flags_.size()) flags_.resize(id + std::size_t{1}, 0);
    flags_[id] = 1;
  }

 private:
  Array<std::uint8_t> flags_;
};

// What a caller needs to know of one leaf of a function's result.
struct LeafSummary {
  bool allocates = false;  // a tensor made in the function or below it
  bool constant = false;
  bool scalar = false;
  bool unknown = false;
  Array<std::uint32_t> inputs;  // sorted: what comes out of these inputs

  bool operator==(const LeafSummary& other) const {
    return allocates == other.allocates && constant == other.constant && scalar == other.scalar &&
           unknown == other.unknown && inputs == other.inputs;
  }
};
using FunctionSummary = Array<LeafSummary>;

// The analysis of one function, given what is known of the others.
class OriginAnalysis {
 public:
  OriginAnalysis(const Module& module, std::uint32_t function, const Array<FunctionSummary>& summaries);

  // Runs to the fixed point. False when the states of all blocks take more register entries than that;
  // nothing else is valid then.
  bool Run(std::size_t max_state_entries);

  FunctionSummary Summary();
  // Per leaf: what it can be.
  const Array<OriginSet>& leaf_sets() const { return leaf_sets_; }
  // Whether a leaf's value may hold more than one tensor (an ADT or something unknown behind a `value`).
  bool IsOpaque(std::uint32_t leaf);
  // Tensors that may be read before anything has been written to them: rule (a).
  bool ReadsUnwritten(OriginId id) const { return reads_unwritten_.Has(id); }

  // Calls visit(pc, state before) for every reachable instruction, in order of place.
  template <typename Visit>
  void VisitStates(Visit visit);

  struct State {
    Array<OriginSet> registers;
    OriginSet unwritten = 0;  // tensors that may not have been written yet
  };

  OriginTable& table() { return table_; }
  const Array<BasicBlock>& blocks() const { return blocks_; }

  // Which arguments of an InvokePacked are surely written: the last ones, as long as none can be an ADT that
  // is flattened, and those that the import declares.
  Array<std::uint8_t> WrittenArguments(std::uint32_t pc, const State& state);

 private:
  bool MayBeAdt(const Origin& origin) const;
  void Transfer(std::uint32_t pc, State* state);
  void TransferCall(std::uint32_t pc, State* state);
  void TransferKernel(std::uint32_t pc, State* state);
  void TransferReturn(std::uint32_t pc, const State& state);
  void Read(OriginSet set, const State& state);
  OriginSet ReachOf(Span<const std::uint32_t> registers, const State& state);
  OriginSet FieldOf(OriginSet set, std::uint32_t index);
  OriginSet CallNode(std::uint32_t pc, const Type& type, const FunctionSummary& summary,
                     Span<const std::uint32_t> args, const State& state);
  bool MergeInto(std::uint32_t block, const State& state);

  const Module& module_;
  const Function& function_;
  const Array<FunctionSummary>& summaries_;
  Array<BasicBlock> blocks_;
  Array<State> entry_states_;
  Array<std::uint8_t> reached_;
  OriginTable table_;
  Array<OriginSet> leaf_sets_;
  OriginFlags reads_unwritten_;
  bool changed_ = false;  // a tuple's fields grew: states computed from them must be computed again
};

template <typename Visit>
void OriginAnalysis::VisitStates(Visit visit) {
  for (std::uint32_t block = 0; block < blocks_.size(); ++block) {
    if (!reached_[block]) continue;
    State state = entry_states_[block];
    for (std::uint32_t pc = blocks_[block].begin; pc < blocks_[block].end; pc += function_.code[pc] >> 8) {
      visit(pc, state);
      Transfer(pc, &state);
    }
  }
}

}  // namespace rewire
