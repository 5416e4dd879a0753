// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/passes/memory/arena_layout.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "rewire/vm/heap/object_heap.h"

namespace rewire::compiler {
namespace {

std::uint64_t Rounded(std::uint64_t bytes, std::uint64_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

// The sizes of the blocks that the VM makes for a storage: its object's and its memory's, or one for both.
std::vector<std::uint64_t> PoolBlocks(std::uint64_t bytes, bool device) {
  if (device) return {BlockPool::BlockBytes(bytes)};
  const auto requests = ObjectHeap::RequestsOf(bytes, kArenaAlignment, StorageFill::kUndefined);
  if (requests.one_block) return {BlockPool::BlockBytes(requests.object)};
  return {BlockPool::BlockBytes(requests.object), BlockPool::BlockBytes(requests.memory)};
}

using Before = bool (*)(const ArenaBlock& a, const ArenaBlock& b);

bool IsLarger(const ArenaBlock& a, const ArenaBlock& b) { return a.bytes > b.bytes; }
bool LivesLonger(const ArenaBlock& a, const ArenaBlock& b) { return a.end - a.begin > b.end - b.begin; }

// One after the other, each into the smallest gap between those that are there at the same time.
std::uint64_t LayOutBy(Before before, std::uint64_t alignment, std::vector<ArenaBlock>* blocks) {
  std::vector<std::size_t> order(blocks->size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return before((*blocks)[a], (*blocks)[b]); });
  std::uint64_t total = 0;
  std::vector<const ArenaBlock*> placed;  // by offset
  for (const std::size_t index : order) {
    ArenaBlock& block = (*blocks)[index];
    const std::uint64_t bytes = Rounded(block.bytes, alignment);
    std::uint64_t top = 0;  // of what has been passed
    std::uint64_t best_gap = ~std::uint64_t{0};
    for (const ArenaBlock* other : placed) {
      if (other->end < block.begin || block.end < other->begin) continue;
      if (other->offset > top) {
        const std::uint64_t gap = other->offset - top;
        if (gap >= bytes && gap < best_gap) {
          best_gap = gap;
          block.offset = top;
        }
      }
      top = std::max(top, other->offset + Rounded(other->bytes, alignment));
    }
    if (best_gap == ~std::uint64_t{0}) block.offset = top;
    total = std::max(total, block.offset + bytes);
    placed.insert(
        std::upper_bound(placed.begin(), placed.end(), &block,
                         [](const ArenaBlock* a, const ArenaBlock* b) { return a->offset < b->offset; }),
        &block);
  }
  return total;
}

}  // namespace

// The order that leaves fewer gaps depends on the program.
std::uint64_t LayOut(std::vector<ArenaBlock>* blocks, std::uint64_t alignment) {
  std::vector<ArenaBlock> other = *blocks;
  const std::uint64_t bytes = LayOutBy(IsLarger, alignment, blocks);
  const std::uint64_t other_bytes = LayOutBy(LivesLonger, alignment, &other);
  if (other_bytes >= bytes) return bytes;
  *blocks = std::move(other);
  return other_bytes;
}

std::uint64_t PooledBytes(const std::vector<ArenaBlock>& blocks, bool device) {
  // By place: what is taken there, and what is given back behind it.
  std::map<std::size_t, std::vector<std::uint64_t>> taken, given;
  for (const ArenaBlock& block : blocks) {
    for (const std::uint64_t bytes : PoolBlocks(block.bytes, device)) {
      taken[block.begin].push_back(bytes);
      given[block.end + 1].push_back(bytes);
    }
  }
  struct Class {
    std::uint64_t live = 0, peak = 0;
  };
  std::map<std::uint64_t, Class> classes;
  auto next = given.begin();
  for (const auto& [place, sizes] : taken) {
    for (; next != given.end() && next->first <= place; ++next) {
      for (const std::uint64_t bytes : next->second) --classes[bytes].live;
    }
    for (const std::uint64_t bytes : sizes) {
      Class& entry = classes[bytes];
      entry.peak = std::max(entry.peak, ++entry.live);
    }
  }
  std::uint64_t sum = 0;
  for (const auto& [bytes, entry] : classes) sum += bytes * entry.peak;
  return sum;
}

}  // namespace rewire::compiler
