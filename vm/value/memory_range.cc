// SPDX-License-Identifier: Apache-2.0
#include "rewire/vm/value/memory_range.h"

#include "rewire/base/assert.h"

namespace rewire {
namespace {

// The distance that elements reach, in bytes below and above the first one. Returns false beyond kMaxReach,
// which is half of what pointer arithmetic can express.
bool FindReach(const DLTensor& tensor, std::int64_t* below, std::int64_t* above) {
  constexpr std::int64_t kMaxReach = INT64_MAX / 2;
  const auto element = static_cast<std::int64_t>(ElementBytes(tensor.dtype));
  for (std::int32_t i = 0; i < tensor.ndim; ++i) {
    if (tensor.shape[i] == 1) continue;  // its stride is never used
    std::int64_t reach = 0;
    if (__builtin_mul_overflow(tensor.strides[i], tensor.shape[i] - 1, &reach) ||
        __builtin_mul_overflow(reach, element, &reach)) {
      return false;
    }
    std::int64_t* const side = reach < 0 ? below : above;
    if (__builtin_add_overflow(*side, reach, side) || *side < -kMaxReach || *side > kMaxReach) return false;
  }
  return !__builtin_add_overflow(*above, element, above);
}

}  // namespace

bool FindRange(const DLTensor& tensor, MemoryRange* range) {
  const auto address = reinterpret_cast<std::uintptr_t>(tensor.data);
  const std::uintptr_t first = address + tensor.byte_offset;
  *range = {first, first};
  if (first < address) return false;
  const Span<const std::int64_t> shape(tensor.shape, static_cast<std::size_t>(tensor.ndim));
  const std::uint64_t bytes = TensorBytes(tensor.dtype, shape).value_or(0);
  if (bytes == 0) return true;
  if (IsContiguous(tensor)) return FindRange(reinterpret_cast<const void*>(first), bytes, range);
  std::int64_t below = 0;
  std::int64_t above = 0;
  if (!FindReach(tensor, &below, &above)) return false;
  *range = {first + static_cast<std::uintptr_t>(below), first + static_cast<std::uintptr_t>(above)};
  return range->begin <= first && range->end > first;
}

MemoryRange RangeOf(const void* data, std::uint64_t bytes) {
  MemoryRange range;
  [[maybe_unused]] const bool found = FindRange(data, bytes, &range);
  REWIRE_ASSERT(found, "{} bytes reach beyond the address space", bytes);
  return range;
}

MemoryRange RangeOf(const DLTensor& tensor) {
  MemoryRange range;
  [[maybe_unused]] const bool found = FindRange(tensor, &range);
  REWIRE_ASSERT(found, "a tensor {} reaches beyond the address space", TensorText(tensor));
  return range;
}

bool ElementsAreApart(const DLTensor& tensor) {
  if (IsContiguous(tensor)) return true;
  // From the smallest stride up: each must step over what all before it reach together.
  bool taken[kMaxRank] = {};
  std::uint64_t reach = 0;
  for (std::int32_t step = 0; step < tensor.ndim; ++step) {
    std::int32_t next = -1;
    std::uint64_t stride = 0;
    for (std::int32_t i = 0; i < tensor.ndim; ++i) {
      const std::int64_t given = tensor.strides[i];
      const std::uint64_t size = given < 0 ? std::uint64_t{0} - static_cast<std::uint64_t>(given)
                                           : static_cast<std::uint64_t>(given);
      if (taken[i] || tensor.shape[i] == 1 || (next >= 0 && size >= stride)) continue;
      next = i;
      stride = size;
    }
    if (next < 0) return true;
    taken[next] = true;
    if (stride <= reach) return false;
    reach += stride * static_cast<std::uint64_t>(tensor.shape[next] - 1);
  }
  return true;
}

}  // namespace rewire
