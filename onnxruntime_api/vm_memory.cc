// SPDX-License-Identifier: Apache-2.0
#include "rewire/onnxruntime_api/vm_memory.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>

namespace rewire::onnxruntime_api {
namespace {

// Smaller blocks are kept by the C library's own lists.
constexpr std::size_t kLeastKept = std::size_t{128} << 10;
constexpr std::size_t kMostKept = std::size_t{16} << 20;
constexpr std::size_t kMostBlocks = 16;

struct Block {
  void* memory;
  std::size_t size;
  std::size_t alignment;
};

// Blocks of released results, the oldest first. Hosts release values in static destructors, so it is never
// destroyed.
struct Kept {
  std::mutex mutex;
  Block blocks[kMostBlocks];
  std::size_t count = 0;
  std::size_t bytes = 0;

  Block TakeAt(std::size_t i) {
    const Block block = blocks[i];
    std::copy(blocks + i + 1, blocks + count, blocks + i);
    --count;
    bytes -= block.size;
    return block;
  }
};
Kept& TheKept() {
  static Kept* const kept = new Kept;
  return *kept;
}

void Free(const Block& block) {
  const Allocator usual = DefaultAllocator();
  usual.deallocate(usual.context, block.memory, block.size, block.alignment);
}

void* AllocateKept(void*, std::size_t size, std::size_t alignment) {
  if (size >= kLeastKept) {
    Kept& kept = TheKept();
    const std::lock_guard lock(kept.mutex);
    for (std::size_t i = kept.count; i-- > 0;) {
      if (kept.blocks[i].size == size && kept.blocks[i].alignment == alignment) return kept.TakeAt(i).memory;
    }
  }
  const Allocator usual = DefaultAllocator();
  return usual.allocate(usual.context, size, alignment);
}

void DeallocateKept(void*, void* memory, std::size_t size, std::size_t alignment) {
  if (size < kLeastKept || size > kMostKept) return Free({memory, size, alignment});
  Kept& kept = TheKept();
  const std::lock_guard lock(kept.mutex);
  while (kept.count == kMostBlocks || (kept.count > 0 && kept.bytes + size > kMostKept)) Free(kept.TakeAt(0));
  kept.blocks[kept.count++] = {memory, size, alignment};
  kept.bytes += size;
}

// Hosts' allocators know no alignment, so a block has room for one, and begins with where it really begins.
void* AllocateByHost(void* context, std::size_t size, std::size_t alignment) {
  auto* const allocator = static_cast<OrtAllocator*>(context);
  const std::size_t room = alignment + sizeof(void*);
  if (size > PTRDIFF_MAX - room) return nullptr;
  void* const begin = allocator->Alloc(allocator, size + room);
  if (begin == nullptr) return nullptr;
  const std::uintptr_t least = reinterpret_cast<std::uintptr_t>(begin) + sizeof(void*);
  const std::uintptr_t place = (least + alignment - 1) / alignment * alignment;
  char* const memory = static_cast<char*>(begin) + (place - reinterpret_cast<std::uintptr_t>(begin));
  std::memcpy(memory - sizeof begin, &begin, sizeof begin);
  return memory;
}
void DeallocateByHost(void* context, void* memory, std::size_t, std::size_t) {
  auto* const allocator = static_cast<OrtAllocator*>(context);
  void* begin = nullptr;
  std::memcpy(&begin, static_cast<char*>(memory) - sizeof begin, sizeof begin);
  allocator->Free(allocator, begin);
}

}  // namespace

Allocator KeepingAllocator() { return {nullptr, AllocateKept, DeallocateKept}; }

void FreeKeptBlocks() {
  Kept& kept = TheKept();
  const std::lock_guard lock(kept.mutex);
  while (kept.count > 0) Free(kept.TakeAt(0));
}

Allocator HostsAllocator(OrtAllocator* allocator) { return {allocator, AllocateByHost, DeallocateByHost}; }

}  // namespace rewire::onnxruntime_api
