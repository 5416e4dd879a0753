// SPDX-License-Identifier: Apache-2.0
// The objects of an abstract run: what a register may hold, which blocks of memory that keeps, and what is
// known of its contents.
//
// Nodes never change; what becomes of one in the course of a run (a storage takes its memory, a shape is
// written into a tensor) is a fact of a state. Where paths meet, two nodes become one that keeps at least
// what either kept. A node's children have smaller numbers, so there are no cycles.
#pragma once

#include <cstdint>
#include <utility>

#include "base/array.h"
#include "executable_format/types.h"

namespace rewire::bounds {

using NodeId = std::uint32_t;
inline constexpr NodeId kNothing = 0;

// A kind of block that the pool keeps a list of: everything of one class is exchangeable.
using BlockClass = std::uint32_t;

// Integers that are known: a scalar's, a shape's. 0 stands for unknown ones.
using ContentsId = std::uint32_t;
struct Contents {
  Array<std::int64_t> values;
  // False: upper bounds, computed from the maxima of symbolic dimensions by the instruction `origin`.
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
  bool exact = true;      // they, or a storage's size, are no upper bounds
  DLDataType dtype = {0, 0, 0};
  std::int32_t rank = kUnknownRank;
  Array<std::int64_t> dims;
  std::uint32_t origin = 0;     // of inexact dims: where they come from; tensors of one origin are alike
  std::uint32_t function = 0;   // kClosure; kNoFunction when paths differ
  ContentsId contents = 0;      // from the start
  std::uint64_t alignment = 0;  // kStorage
  std::uint64_t raw = 0;        // kStorage: bytes asked for
  bool on_device = false;       // kStorage
  std::uint64_t header = 0;     // bytes of its own object
  Array<BlockClass> blocks;     // of its own object, sorted
  Array<BlockClass> data;       // kStorage: of its memory once taken, sorted
  Array<NodeId> children;       // a tensor's storage, a tuple's fields
};
inline constexpr std::uint32_t kNoFunction = 0xFFFFFFFFu;

struct State {
  Array<NodeId> registers;
  // By node, sorted: for what has data of its own that its memory is taken (1), for a tensor its contents.
  Array<std::pair<NodeId, std::uint32_t>> facts;

  std::uint32_t FactOf(NodeId node) const;  // 0: none
  void SetFact(NodeId node, std::uint32_t fact);
};

// What is held at one moment.
struct Held {
  Array<std::uint32_t> blocks;  // by class
  std::uint64_t storage = 0;
  std::uint64_t device = 0;
  std::uint64_t objects = 0;
};

class AbstractHeap {
 public:
  using Roots = Array<const Array<NodeId>*>;

  AbstractHeap();
  NodeId Add(Node node);
  const Node& Get(NodeId id) const { return nodes_[id]; }
  std::uint32_t size() const { return static_cast<std::uint32_t>(nodes_.size()); }

  ContentsId AddContents(Contents contents);
  // Null when unknown.
  const Contents* ContentsOf(const State& state, NodeId node) const;

  // Counts everything that can be reached from the roots, once; `state` has the facts.
  // How many nodes that are.
  std::size_t Count(const Roots& roots, const State& state, Held* held);
  // Forgets the facts of nodes that cannot be reached from the roots.
  void Prune(const Roots& roots, State* state);

  // Makes *into hold whatever either did; `outer` is what callers hold. True when that changed it. False in
  // *ok: a value is nested too deeply.
  bool Join(State* into, const State& other, Roots outer, bool* ok);

 private:
  struct Joining;
  template <typename Visit>
  void ForEachReached(const Roots& roots, Visit visit);
  NodeId JoinNodes(Joining* joining, NodeId a, NodeId b, std::uint32_t depth);
  void JoinFacts(Joining* joining);

  Array<Node> nodes_;
  Array<Contents> contents_;
  Array<ContentsId> same_hash_;  // by contents: the next of the same bucket
  Array<ContentsId> buckets_;
  Array<std::uint32_t> mark_;  // by node: met in the pass that `epoch_` numbers
  std::uint32_t epoch_ = 0;
  // Of a join, by node that is marked.
  struct InJoin {
    std::uint32_t first_pair = 0;  // 1 + index of the latest pair that it is the left one of
    bool outer = false;            // a caller holds it
    bool as_itself = false;        // it stands for itself
    bool merged = false;           // it stands for itself on one path and for another node on the other
  };
  Array<InJoin> in_join_;
  InJoin& JoinInfo(NodeId id);
  Array<NodeId> open_;
};

}  // namespace rewire::bounds
