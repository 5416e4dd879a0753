// SPDX-License-Identifier: Apache-2.0
//
// Ranges of addresses, used to find tensors that share memory.
#pragma once

#include <algorithm>
#include <cstdint>

#include "rewire/base/assert.h"
#include "rewire/base/dtype.h"
#include "rewire/base/sort.h"
#include "rewire/base/span.h"
#include "rewire/vm/value/shape.h"

namespace rewire {

struct MemoryRange {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;  // one past; equal to begin for no memory

  bool empty() const { return begin == end; }
  // An empty range overlaps nothing, even if it lies inside another range.
  bool Overlaps(const MemoryRange& other) const {
    return begin < other.end && other.begin < end && !empty() && !other.empty();
  }
};

// The bytes from `data` on. Returns false if they would exceed the address space.
inline bool FindRange(const void* data, std::uint64_t bytes, MemoryRange* range) {
  const auto begin = reinterpret_cast<std::uintptr_t>(data);
  *range = {begin, begin + bytes};
  return range->end >= begin;
}

// The range from the lowest to the highest byte of a tensor's elements. Strides may be null and may be
// negative. The tensor's bytes must have been checked (TensorBytes). Returns false if an element would lie
// outside the address space.
bool FindRange(const DLTensor& tensor, MemoryRange* range);

// The same for arguments that FindRange has accepted before.
MemoryRange RangeOf(const void* data, std::uint64_t bytes);
MemoryRange RangeOf(const DLTensor& tensor);

// True if no two elements of a tensor share a byte. The test sorts the strides by size: each must step over
// everything that the smaller ones reach. It also refuses some rare forms without shared bytes.
bool ElementsAreApart(const DLTensor& tensor);

// A range and the index of its owner. Sorted by begin, then by index.
struct NamedRange {
  MemoryRange range;
  std::uint32_t index = 0;
};

inline void SortByBegin(Span<NamedRange> ranges) {
  Sort(ranges, [](const NamedRange& a, const NamedRange& b) {
    return a.range.begin != b.range.begin ? a.range.begin < b.range.begin : a.index < b.index;
  });
}

// Returns the first of the ranges that shares memory with `range`, or null. The ranges must be sorted and not
// empty, and must not overlap one another.
inline const NamedRange* FindOverlap(Span<const NamedRange> ranges, const MemoryRange& range) {
  // The ends are sorted, too, because the ranges do not overlap.
  const auto found = std::partition_point(
      ranges.begin(), ranges.end(), [&](const NamedRange& entry) { return entry.range.end <= range.begin; });
  REWIRE_ASSERT(found == ranges.begin() || (found - 1)->range.begin <= range.begin,
                "the {} ranges are not sorted", ranges.size());
  return found != ranges.end() && found->range.Overlaps(range) ? &*found : nullptr;
}

}  // namespace rewire
