// SPDX-License-Identifier: Apache-2.0
// MemoryAccount: every byte a VM holds, from one allocator, against one limit.
//
// Shared by a VM and by what it made that may outlive it, so it counts its own references: one for the VM,
// one for each block. Taking and returning blocks is rare (free lists stand in front), so its counters are
// plain atomics. On cache lines of its own: accounts lie near each other when one thread makes several VMs.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "vm/allocator.h"
#include "vm/cache_line.h"

namespace rewire {

class alignas(kCacheLine) MemoryAccount {
 public:
  // With one reference, the caller's. The account itself is not in the allocator's memory, so that a VM can
  // be made, and say so, when there is none.
  static MemoryAccount* Make(const Allocator& allocator);
  // The same, and `release(allocator.context)` is called when the account has gone: for an allocator that is
  // counted.
  static MemoryAccount* Make(const Allocator& allocator, void (*release)(void* context));
  // In the allocator's memory after all; null when it has none.
  static MemoryAccount* MakeWithin(const Allocator& allocator);
  // The process-wide account of values that hosts make; DefaultAllocator, no limit. Never destroyed.
  static MemoryAccount* Host();

  // Null when the limit or the allocator says no; over_limit() tells which. Holds a reference until Free. Any
  // thread.
  void* Allocate(std::uint64_t bytes, std::uint64_t alignment);
  void Free(void* block, std::uint64_t bytes, std::uint64_t alignment);
  // For memory that comes from elsewhere (a device) but counts too. False when over the limit.
  bool Charge(std::uint64_t bytes);
  void Refund(std::uint64_t bytes) { used_.fetch_sub(bytes, std::memory_order_relaxed); }

  void Ref() { references_.fetch_add(1, std::memory_order_relaxed); }
  void Unref();

  // Of the last request that failed: the limit said no, and not the allocator.
  bool over_limit() const { return over_limit_.load(std::memory_order_relaxed); }

  void set_limit(std::uint64_t bytes) { limit_ = bytes; }
  std::uint64_t limit() const { return limit_; }
  std::uint64_t used() const { return used_.load(std::memory_order_relaxed); }
  std::uint64_t peak() const { return peak_.load(std::memory_order_relaxed); }
  const Allocator& allocator() const { return allocator_; }

 private:
  explicit MemoryAccount(const Allocator& allocator) : allocator_(allocator) {}

  Allocator allocator_;
  std::uint64_t limit_ = ~std::uint64_t{0};
  std::atomic<bool> over_limit_{false};
  std::atomic<std::uint64_t> used_{0};
  std::atomic<std::uint64_t> peak_{0};
  std::atomic<std::uint64_t> references_{1};
  bool within_ = false;  // lies in the allocator's memory
  void (*release_)(void* context) = nullptr;
};

}  // namespace rewire
