// SPDX-License-Identifier: Apache-2.0
//
// Origins of values in one function, and sets of them. An origin is an instruction, input or constant that a
// value may come from.
//
// Equal sets have the same number (they are interned), so most joins only compare two numbers. A set has at
// most kMostMembers origins; a larger one becomes kManySet, which stands for "anything". So the cost of each
// operation is bounded, however a program moves values between registers. A value with too many possible
// origins is copied if it is an output.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "rewire/base/array.h"
#include "rewire/base/span.h"
#include "rewire/base/work_meter.h"

namespace rewire {

struct Origin {
  enum Kind : std::uint8_t {
    kAlloc,     // the tensor that the instruction at `pc` makes
    kCallLeaf,  // a tensor that the callee of the Invoke at `pc` makes and returns as its leaf `index`
    kTuple,     // the ADT or closure that the instruction at `pc` makes; of an Invoke, node `index` of its
                // result
    kInput,     // any value inside input `index`
    kConstant,
    kScalar,   // values without own tensor memory: integers, shapes of nothing, storages
    kUnknown,  // a value that a kernel or a closure returned: may hold anything else in the set
    kMany,     // more origins than a set can have: anything
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
using OriginSet = std::uint32_t;

inline constexpr OriginId kManyId = 0;
inline constexpr OriginSet kNoOrigins = 0;  // the empty set
inline constexpr OriginSet kManySet = 1;    // {kManyId}

// Numbers entries in the order in which they are first seen. The user keeps the entries. Open addressing;
// never shrinks.
class InternIndex {
 public:
  // Returns the number of the entry with this hash for which equal(number) holds. Otherwise stores and
  // returns `next`.
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

class OriginTable {
 public:
  static constexpr std::uint32_t kMostMembers = 64;

  // The meter counts every operation. Once it is exhausted, results are meaningless.
  explicit OriginTable(WorkMeter* meter);

  OriginId Id(const Origin& origin);
  // The same for an origin that the table does not have yet and that is not asked for by Id.
  OriginId Add(const Origin& origin);
  const Origin& Get(OriginId id) const { return origins_[id]; }
  // Number of origins; ids are below it.
  std::uint32_t size() const { return static_cast<std::uint32_t>(origins_.size()); }

  OriginSet Single(const Origin& origin) { return SetOf(Id(origin)); }
  OriginSet SetOf(OriginId id);
  OriginSet Union(OriginSet a, OriginSet b);
  // Members in ascending order. They do not move when sets are added.
  Span<const OriginId> Members(OriginSet set) const { return sets_[set]; }

  // The sets of origins of a tuple's fields. They grow with AddField.
  Span<const OriginSet> Fields(OriginId tuple) const;
  // The origins of all its fields together.
  OriginSet Contents(OriginId tuple) const {
    return tuple < contents_.size() ? contents_[tuple] : kNoOrigins;
  }
  void AddField(OriginId tuple, std::uint32_t index, OriginSet set);
  // True if a field of a tuple has grown after somebody had read that tuple. Results that were computed from
  // it must then be computed again. Clears the mark.
  bool TakeGrown() { return std::exchange(grown_, false); }

  // Everything in the set and everything reachable through its tuples. Marks those tuples as read.
  OriginSet Reach(OriginSet set);
  void MarkRead(OriginId tuple);

 private:
  OriginSet Intern(Span<const OriginId> members);  // sorted, unique, at most kMostMembers
  const OriginId* Keep(Span<const OriginId> members);

  WorkMeter& meter_;
  Array<Origin> origins_;
  InternIndex ids_;
  Array<OriginSet> singles_;  // by origin: the set of it alone; kNoOrigins if it has none yet
  Array<Span<const OriginId>> sets_;
  InternIndex set_ids_;
  Array<std::unique_ptr<OriginId[]>> chunks_;  // storage of the members of sets
  std::size_t chunk_left_ = 0;
  Array<Array<OriginSet>> fields_;  // by origin
  Array<OriginSet> contents_;       // by origin
  Array<std::uint8_t> read_;        // by origin: whether the tuple has been read
  bool grown_ = false;
};

}  // namespace rewire
