// SPDX-License-Identifier: Apache-2.0
//
// MemoryAccount: counts every byte that a VM holds, from one allocator, against one limit.
//
// A VM shares its account with objects that may outlive it. So the account lives until its owner has closed
// it and every block is freed. Only the owner takes memory, but any thread may free it. A result that leaves
// its VM takes new blocks in every run. So what is taken is counted without locked instructions, apart from
// what is freed.
//
// An account has cache lines of its own, because accounts lie near each other if one thread makes several
// VMs.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>

#include "rewire/vm/allocator.h"
#include "rewire/vm/memory/cache_line.h"

namespace rewire {

// Objects on cache lines of their own that `new` makes take their memory as DefaultAllocator does.
struct OnCacheLines {
  // The check does not take a sized delete for the counterpart.
  // NOLINTBEGIN(misc-new-delete-overloads)
  static void* operator new(std::size_t size);
  static void* operator new(std::size_t size, std::align_val_t) { return operator new(size); }
  // NOLINTEND(misc-new-delete-overloads)
  static void* operator new(std::size_t, void* place) { return place; }
  static void operator delete(void* memory, std::size_t size);
  static void operator delete(void* memory, std::size_t size, std::align_val_t) {
    operator delete(memory, size);
  }
};

class alignas(kCacheLine) MemoryAccount : public OnCacheLines {
 public:
  // Makes an account, which the caller owns. The account itself is not in the allocator's memory, so that a
  // VM can be made, and report an error, even if there is none.
  static MemoryAccount* Make(const Allocator& allocator);
  // The same. `release(allocator.context)` is called when the account is gone, for allocators that are
  // reference-counted.
  static MemoryAccount* Make(const Allocator& allocator, void (*release)(void* context));
  // Makes an account inside the allocator's memory. Returns null if there is none.
  static MemoryAccount* MakeWithin(const Allocator& allocator);
  // The process-wide account of values that hosts make. It uses DefaultAllocator and has no limit. Never
  // destroyed.
  static MemoryAccount* Host();

  // Sets a function that frees memory which the owner only keeps for later. It is called before a request
  // fails. So whether a request succeeds does not depend on what earlier ones left behind. Null: there is no
  // such memory.
  void set_reclaim(void (*reclaim)(void* context), void* context) {
    reclaim_ = reclaim;
    reclaim_context_ = context;
  }

  // Allocates memory, at least a byte. Returns null if the limit or the allocator refuses; over_limit() tells
  // which. The account lives until Free. Only the owner may call it, one thread at a time; any thread may for
  // Host().
  void* Allocate(std::uint64_t bytes, std::uint64_t alignment);
  // Thread-safe.
  void Free(void* block, std::uint64_t bytes, std::uint64_t alignment) {
    Deallocate(block, bytes, alignment);
    Uncount(bytes);
  }
  // The two halves of Free. So several blocks can be uncounted at once, after the last.
  void Deallocate(void* block, std::uint64_t bytes, std::uint64_t alignment) {
    allocator_.deallocate(allocator_.context, block, bytes, alignment);
  }
  void Uncount(std::uint64_t bytes) {
    if (left_.fetch_sub(bytes, std::memory_order_acq_rel) == bytes) End();
  }
  // Counts memory that comes from elsewhere (a device), for the owner. Returns false if it would exceed the
  // limit. Refund is thread-safe.
  bool Charge(std::uint64_t bytes);
  void Refund(std::uint64_t bytes) { left_.fetch_sub(bytes, std::memory_order_relaxed); }

  // The owner takes no more memory. The account ends with its last block.
  void Close();

  // True if the last failed request was refused by the limit and not by the allocator.
  bool over_limit() const { return over_limit_.load(std::memory_order_relaxed); }

  void set_limit(std::uint64_t bytes) { limit_ = bytes; }
  std::uint64_t limit() const { return limit_; }
  std::uint64_t used() const {
    // In this order: what is taken and freed in between counts once too often rather than too seldom.
    const std::uint64_t left = left_.load(std::memory_order_acquire);
    return taken_.load(std::memory_order_relaxed) + left - kOpen;
  }
  std::uint64_t peak() const { return peak_.load(std::memory_order_relaxed); }
  const Allocator& allocator() const { return allocator_; }

 private:
  explicit MemoryAccount(const Allocator& allocator, bool shared = false)
      : allocator_(allocator), shared_(shared) {}
  bool TryCharge(std::uint64_t bytes);
  [[gnu::cold]] bool Reclaim(std::uint64_t bytes, bool* reclaimed);
  void End();

  // The beginning of `left_`: more than is taken before TryCharge moves it. So it never gets to zero while
  // the account is open.
  static constexpr std::uint64_t kOpen = std::uint64_t{1} << 62;
  static constexpr std::uint64_t kMostAtOnce = std::uint64_t{1} << 55;

  Allocator allocator_;
  std::uint64_t limit_ = ~std::uint64_t{0};
  std::atomic<bool> over_limit_{false};
  std::atomic<std::uint64_t> taken_{0};  // bytes; only the owner writes it
  std::atomic<std::uint64_t> left_{
      kOpen};  // kOpen minus the bytes that were freed; once closed, the bytes in use
  std::atomic<std::uint64_t> peak_{0};
  bool shared_;          // any thread takes memory: Host()
  bool within_ = false;  // lies in the allocator's memory itself
  void (*release_)(void* context) = nullptr;
  void (*reclaim_)(void* context) = nullptr;
  void* reclaim_context_ = nullptr;
};

}  // namespace rewire
