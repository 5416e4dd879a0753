// SPDX-License-Identifier: Apache-2.0
// Ranges of addresses, to find out who shares memory.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/dtype.h"
#include "base/sort.h"
#include "base/span.h"
#include "vm/shape.h"

namespace rewire {

struct MemoryRange {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;  // one past; equal to begin for no memory

  bool Overlaps(const MemoryRange& other) const { return begin < other.end && other.begin < end; }
};

inline MemoryRange RangeOf(const void* data, std::uint64_t bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(data);
  return {begin, begin + bytes};
}

// From the lowest to the highest byte that a tensor's elements touch, strides of either sign.
inline MemoryRange RangeOf(const DLTensor& tensor) {
  const std::uint64_t element = ElementBytes(tensor.dtype);
  std::int64_t low = 0;
  std::int64_t high = 0;
  std::int64_t stride = 1;
  for (std::int32_t i = tensor.ndim; i-- > 0;) {
    if (tensor.shape[i] == 0) return {};
    const std::int64_t step = tensor.strides != nullptr ? tensor.strides[i] : stride;
    (step < 0 ? low : high) += step * (tensor.shape[i] - 1);
    stride *= tensor.shape[i];
  }
  const auto base = reinterpret_cast<std::uintptr_t>(tensor.data) + tensor.byte_offset;
  return {base + static_cast<std::uintptr_t>(low) * element,
          base + static_cast<std::uintptr_t>(high) * element + element};
}

// A range and whose it is. Sorted by begin, then by index.
struct NamedRange {
  MemoryRange range;
  std::uint32_t index = 0;
};

inline void SortByBegin(Span<NamedRange> ranges) {
  Sort(ranges, [](const NamedRange& a, const NamedRange& b) {
    return a.range.begin != b.range.begin ? a.range.begin < b.range.begin : a.index < b.index;
  });
}

// The first of the ranges, which are sorted and do not overlap one another, that shares memory with `range`;
// null when none does.
inline const NamedRange* FindOverlap(Span<const NamedRange> ranges, const MemoryRange& range) {
  // Their ends are sorted as well.
  const auto found = std::partition_point(
      ranges.begin(), ranges.end(), [&](const NamedRange& entry) { return entry.range.end <= range.begin; });
  return found != ranges.end() && found->range.Overlaps(range) ? &*found : nullptr;
}

}  // namespace rewire
