// SPDX-License-Identifier: Apache-2.0
#include "rewire/vm/memory/memory_account.h"

#include <cstdlib>
#include <new>

namespace rewire {
namespace {

void* DefaultAllocate(void* /*context*/, std::size_t size, std::size_t alignment) {
  // aligned_alloc wants a size that is a multiple of the alignment.
  return std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
}

void DefaultDeallocate(void* /*context*/, void* pointer, std::size_t /*size*/, std::size_t /*alignment*/) {
  std::free(pointer);
}

}  // namespace

Allocator DefaultAllocator() { return Allocator{nullptr, DefaultAllocate, DefaultDeallocate}; }

MemoryAccount* MemoryAccount::Make(const Allocator& allocator) { return new MemoryAccount(allocator); }

MemoryAccount* MemoryAccount::Make(const Allocator& allocator, void (*release)(void* context)) {
  MemoryAccount* account = Make(allocator);
  account->release_ = release;
  return account;
}

MemoryAccount* MemoryAccount::MakeWithin(const Allocator& allocator) {
  void* memory = allocator.allocate(allocator.context, sizeof(MemoryAccount), 64);
  if (memory == nullptr) return nullptr;
  auto* account = new (memory) MemoryAccount(allocator);
  account->within_ = true;
  return account;
}

MemoryAccount* MemoryAccount::Host() {
  alignas(MemoryAccount) static char memory[sizeof(MemoryAccount)];
  static auto* account = new (memory) MemoryAccount(DefaultAllocator());
  return account;
}

bool MemoryAccount::Charge(std::uint64_t bytes) {
  // More than all of the limit: no room that is made helps.
  return TryCharge(bytes) || (bytes <= limit_ && Reclaim() && TryCharge(bytes));
}

bool MemoryAccount::Reclaim() {
  if (reclaim_ == nullptr) return false;
  reclaim_(reclaim_context_);
  return true;
}

bool MemoryAccount::TryCharge(std::uint64_t bytes) {
  const std::uint64_t before = used_.fetch_add(bytes, std::memory_order_relaxed);
  if (bytes > limit_ || before > limit_ - bytes) {
    used_.fetch_sub(bytes, std::memory_order_relaxed);
    over_limit_.store(true, std::memory_order_relaxed);
    return false;
  }
  const std::uint64_t now = before + bytes;
  std::uint64_t peak = peak_.load(std::memory_order_relaxed);
  while (peak < now && !peak_.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
  }
  return true;
}

void* MemoryAccount::Allocate(std::uint64_t bytes, std::uint64_t alignment) {
  void* block = TryAllocate(bytes, alignment);
  if (block != nullptr || bytes > limit_ || !Reclaim()) return block;
  return TryAllocate(bytes, alignment);
}

void* MemoryAccount::TryAllocate(std::uint64_t bytes, std::uint64_t alignment) {
  if (!TryCharge(bytes)) return nullptr;
  void* block = allocator_.allocate(allocator_.context, bytes, alignment);
  if (block == nullptr) {
    Refund(bytes);
    over_limit_.store(false, std::memory_order_relaxed);
    return nullptr;
  }
  references_.fetch_add(1, std::memory_order_relaxed);
  return block;
}

void MemoryAccount::Free(void* block, std::uint64_t bytes, std::uint64_t alignment) {
  allocator_.deallocate(allocator_.context, block, bytes, alignment);
  Refund(bytes);
  Unref();
}

void MemoryAccount::Unref() {
  if (references_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  const Allocator allocator = allocator_;
  void (*const release)(void*) = release_;
  if (within_) {
    this->~MemoryAccount();
    allocator.deallocate(allocator.context, this, sizeof(MemoryAccount), 64);
  } else {
    delete this;
  }
  if (release != nullptr) release(allocator.context);
}

}  // namespace rewire
