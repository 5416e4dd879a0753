// SPDX-License-Identifier: Apache-2.0
#include "rewire/vm/memory/memory_account.h"

#include <sys/mman.h>

#include <cstdlib>
#include <exception>
#include <new>

#include "rewire/base/assert.h"
#include "rewire/base/inline.h"
#include "rewire/base/likely.h"
#include "rewire/vm/memory/huge_page.h"

namespace rewire {
namespace {

// Small blocks are aligned by hand: malloc has lists of them for each thread, and aligned_alloc of glibc 2.36
// takes ten times as long. The byte before a block says how far it lies behind what malloc gave.
constexpr std::size_t kByHand = 64;
bool IsByHand(std::size_t size, std::size_t alignment) { return size <= 4096 && alignment <= kByHand; }

// Who asks for this alignment wants huge pages. The system may refuse them, which changes only times.
void* AllocateHugePages(std::size_t size, std::size_t alignment) {
  void* memory = nullptr;
  if (posix_memalign(&memory, alignment, size) != 0) return nullptr;
  if (size >= kHugePage) madvise(memory, size / kHugePage * kHugePage, MADV_HUGEPAGE);
  return memory;
}

void* DefaultAllocate(void* /*context*/, std::size_t size, std::size_t alignment) {
  if (alignment >= kHugePage) return AllocateHugePages(size, alignment);
  // aligned_alloc wants a size that is a multiple of the alignment.
  if (!IsByHand(size, alignment))
    return std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
  auto* const memory = static_cast<char*>(std::malloc(size + kByHand));
  if (memory == nullptr) return nullptr;
  const std::size_t distance = kByHand - reinterpret_cast<std::uintptr_t>(memory) % kByHand;
  memory[distance - 1] = static_cast<char>(distance);
  return memory + distance;
}

void DefaultDeallocate(void* /*context*/, void* pointer, std::size_t size, std::size_t alignment) {
  auto* const block = static_cast<char*>(pointer);
  std::free(IsByHand(size, alignment) && block != nullptr ? block - block[-1] : block);
}

}  // namespace

// NOLINTNEXTLINE(misc-new-delete-overloads): the matching delete is a member, too.
void* OnCacheLines::operator new(std::size_t size) {
  void* const memory = DefaultAllocate(nullptr, size, kCacheLine);
#if defined(__cpp_exceptions)
  if (memory == nullptr) throw std::bad_alloc();
#else
  if (memory == nullptr) std::terminate();  // as an exception that nothing can catch
#endif
  return memory;
}

void OnCacheLines::operator delete(void* memory, std::size_t size) {
  DefaultDeallocate(nullptr, memory, size, kCacheLine);
}

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
  static auto* account = new (memory) MemoryAccount(DefaultAllocator(), true);
  return account;
}

REWIRE_INLINE bool MemoryAccount::TryCharge(std::uint64_t bytes) {
  if (REWIRE_UNLIKELY(bytes > kMostAtOnce)) {
    over_limit_.store(bytes > limit_, std::memory_order_relaxed);
    return false;
  }
  if (shared_) {  // without a limit
    left_.fetch_add(bytes, std::memory_order_relaxed);
    return true;
  }
  std::uint64_t taken = taken_.load(std::memory_order_relaxed);
  const std::uint64_t now = taken + left_.load(std::memory_order_relaxed) - kOpen + bytes;
  if (now > limit_) {
    over_limit_.store(true, std::memory_order_relaxed);
    return false;
  }
  if (REWIRE_UNLIKELY(taken >= kOpen / 2)) {
    left_.fetch_add(taken, std::memory_order_relaxed);
    taken = 0;
  }
  taken_.store(taken + bytes, std::memory_order_relaxed);
  if (peak_.load(std::memory_order_relaxed) < now) peak_.store(now, std::memory_order_relaxed);
  return true;
}

bool MemoryAccount::Charge(std::uint64_t bytes) {
  bool reclaimed = false;
  do {
    if (TryCharge(bytes)) return true;
  } while (Reclaim(bytes, &reclaimed));
  return false;
}

// Whether a request that failed is worth another try. If it is more than all of the limit, no room helps.
bool MemoryAccount::Reclaim(std::uint64_t bytes, bool* reclaimed) {
  if (*reclaimed || bytes > limit_ || reclaim_ == nullptr) return false;
  *reclaimed = true;
  reclaim_(reclaim_context_);
  return true;
}

void* MemoryAccount::Allocate(std::uint64_t bytes, std::uint64_t alignment) {
  REWIRE_ASSERT(bytes != 0, "a block of no bytes would not keep its account, alignment {}", alignment);
  bool reclaimed = false;
  do {
    if (!TryCharge(bytes)) continue;
    void* const block = allocator_.allocate(allocator_.context, bytes, alignment);
    if (REWIRE_LIKELY(block != nullptr)) return block;
    Refund(bytes);
    over_limit_.store(false, std::memory_order_relaxed);
  } while (Reclaim(bytes, &reclaimed));
  return nullptr;
}

void MemoryAccount::Close() { Uncount(kOpen - taken_.load(std::memory_order_relaxed)); }

void MemoryAccount::End() {
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
