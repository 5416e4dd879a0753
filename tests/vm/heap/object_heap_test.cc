// SPDX-License-Identifier: Apache-2.0
#include "rewire/vm/heap/object_heap.h"

#include <catch2/catch.hpp>
#include <cstdint>

namespace rewire {
namespace {

TEST_CASE("a storage takes of the pool what RequestsOf says, at an address of its alignment") {
  for (const StorageFill fill : {StorageFill::kUndefined, StorageFill::kZero, StorageFill::kPoison}) {
    for (const std::uint32_t least : {1U, 64U, 128U, 256U}) {
      MemoryAccount* account = MemoryAccount::Make(DefaultAllocator());
      {
        ObjectHeap heap(account, fill, least);
        // The table of the larger classes is made with the first large block.
        StorageObject* large = heap.NewStorage(5000, 64, LinkedDevice());
        REQUIRE(heap.TakeMemory(large));
        for (const std::uint64_t size :
             {0, 1, 64, 65, 800, 830, 831, 832, 833, 895, 896, 897, 960, 1023, 1024, 1025, 4096, 100000}) {
          for (const std::uint64_t alignment : {1, 64, 128, 256, 4096}) {
            CAPTURE(static_cast<int>(fill), least, size, alignment);
            const std::uint64_t strictest = std::max<std::uint64_t>(alignment, least);
            const ObjectHeap::Requests requests = ObjectHeap::RequestsOf(size, strictest, fill);
            const std::uint64_t before = account->used();
            StorageObject* storage = heap.NewStorage(size, alignment, LinkedDevice());
            REQUIRE(heap.TakeMemory(storage));
            const std::uint64_t memory = requests.one_block ? 0 : BlockPool::BlockBytes(requests.memory);
            CHECK(account->used() - before == BlockPool::BlockBytes(requests.object) + memory);
            CHECK(reinterpret_cast<std::uintptr_t>(storage->data) % strictest == 0);
            // The memory ends where its block does, or before.
            const auto* block = static_cast<const char*>(
                requests.one_block ? static_cast<const void*>(storage) : storage->block);
            const std::uint64_t room =
                BlockPool::BlockBytes(requests.one_block ? requests.object : requests.memory);
            CHECK(static_cast<const char*>(storage->data) + size <= block + room);
            heap.Release(storage);
            heap.Trim();
            CHECK(account->used() == before);
          }
        }
        heap.Release(large);
      }
      account->Close();
    }
  }
}

}  // namespace
}  // namespace rewire
