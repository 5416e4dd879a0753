// SPDX-License-Identifier: Apache-2.0
//
// The objects of an abstract run: what a register may hold, which memory blocks that keeps, and what is known
// about its contents.
//
// Nodes never change. What happens to one during a run is a fact of a state: a storage takes its memory, a
// shape is written into a tensor. Where paths meet, two nodes become one that keeps at least the memory that
// either kept. A node's children have smaller numbers, so there are no cycles.
#pragma once

#include <cstdint>
#include <utility>

#include "rewire/base/array.h"
#include "rewire/base/work_meter.h"
#include "rewire/executable_format/types.h"

namespace rewire::bounds {

using NodeId = std::uint32_t;
inline constexpr NodeId kNothing = 0;

// A kind of block for which the pool has a list. All blocks of one class are interchangeable.
using BlockClass = std::uint32_t;

// Known integers, such as a scalar or a shape. 0 stands for unknown ones.
using ContentsId = std::uint32_t;
struct Contents {
  Array<std::int64_t> values;
  // False: these are upper bounds, which the instruction `origin` computed from the largest sizes of symbolic
  // dimensions.
  bool exact = true;
  std::uint32_t origin = 0;

  bool operator==(const Contents& other) const {
    return values == other.values && exact == other.exact && origin == other.origin;
  }
};

struct Node {
  enum Kind : std::uint8_t { kNone, kInteger, kTensor, kStorage, kAdt, kClosure, kUnknown };
  Kind kind = kNone;
  bool has_dims = false;  // kTensor: `dims` are known
  bool exact = true;      // the dims, or a storage's size, are exact and not upper bounds
  DLDataType dtype = {0, 0, 0};
  std::int32_t rank = kUnknownRank;
  Array<std::int64_t> dims;
  // for inexact dims: the instruction that they come from; tensors of one origin are alike
  std::uint32_t origin = 0;
  std::uint32_t function = 0;   // kClosure; kNoFunction if paths differ
  ContentsId contents = 0;      // at the beginning
  std::uint64_t alignment = 0;  // kStorage
  std::uint64_t raw = 0;        // kStorage: bytes that the program asked for
  bool on_device = false;       // kStorage
  std::uint64_t header = 0;     // bytes of its own object
  Array<BlockClass> blocks;     // of its own object, sorted
  Array<BlockClass> data;       // kStorage: blocks of its memory once it is taken, sorted
  Array<NodeId> children;       // a tensor's storage, a tuple's fields
};
inline constexpr std::uint32_t kNoFunction = 0xFFFFFFFFu;

struct State {
  Array<NodeId> registers;
  // By node, sorted. For a node with own memory: 1 if the memory is taken. For a tensor: its contents.
  Array<std::pair<NodeId, std::uint32_t>> facts;

  std::uint32_t FactOf(NodeId node) const;  // 0: none
  void SetFact(NodeId node, std::uint32_t fact);
};

// The memory that is held at one moment.
struct Held {
  Array<std::uint32_t> blocks;  // by class
  std::uint64_t storage = 0;
  std::uint64_t device = 0;
  std::uint64_t objects = 0;
};

class AbstractHeap {
 public:
  using Roots = Array<const Array<NodeId>*>;

  // Walks are counted by the meter, which must outlive the heap.
  explicit AbstractHeap(WorkMeter* meter);
  NodeId Add(Node node);
  const Node& Get(NodeId id) const { return nodes_[id]; }
  std::uint32_t size() const { return static_cast<std::uint32_t>(nodes_.size()); }

  ContentsId AddContents(Contents contents);
  // Null if unknown.
  const Contents* ContentsOf(const State& state, NodeId node) const;

  // Counts everything that can be reached from the roots, each node once. `state` provides the facts.
  void Count(const Roots& roots, const State& state, Held* held);
  // Removes the facts of nodes that cannot be reached from the roots.
  void Prune(const Roots& roots, State* state);

  // Makes *into hold whatever either state held. `outer` is what callers hold. Returns true if *into changed.
  // *ok is false if a value is nested too deeply.
  bool Join(State* into, const State& other, Roots outer, bool* ok);

 private:
  struct Joining;
  template <typename Visit>
  void ForEachReached(const Roots& roots, Visit visit);
  NodeId JoinNodes(Joining* joining, NodeId a, NodeId b, std::uint32_t depth);
  void JoinFacts(Joining* joining);

  WorkMeter& meter_;
  Array<Node> nodes_;
  Array<Contents> contents_;
  Array<ContentsId> same_hash_;  // by contents: the next one in the same hash bucket
  Array<ContentsId> buckets_;
  Array<std::uint32_t> mark_;  // by node: visited in the pass with the number `epoch_`
  std::uint32_t epoch_ = 0;
  // For a join, by node that is marked.
  struct InJoin {
    std::uint32_t first_pair = 0;  // 1 + index of the latest pair in which it is the left node
    bool outer = false;            // a caller holds it
    bool as_itself = false;        // it stands for itself
    bool merged = false;           // stands for itself on one path and for another node on the other
  };
  Array<InJoin> in_join_;
  InJoin& JoinInfo(NodeId id);
  Array<NodeId> open_;
};

}  // namespace rewire::bounds
