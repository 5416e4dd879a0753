// SPDX-License-Identifier: Apache-2.0
#include "rewire/vm/memory/fixed_block.h"

#include <new>

namespace rewire {
namespace {

std::uint64_t RoundUp(std::uint64_t value, std::uint64_t unit) { return (value + unit - 1) / unit * unit; }

}  // namespace

std::uint64_t FixedBlock::OwnBytes() { return RoundUp(sizeof(FixedBlock), kAlignment); }

FixedBlock* FixedBlock::Make(void* memory, std::uint64_t bytes) {
  const auto address = reinterpret_cast<std::uintptr_t>(memory);
  const std::uint64_t skipped = RoundUp(address, kAlignment) - address;
  if (memory == nullptr || bytes < skipped || bytes - skipped < OwnBytes()) return nullptr;
  char* begin = static_cast<char*>(memory) + skipped;
  const std::uint64_t room = (bytes - skipped - OwnBytes()) / kUnit * kUnit;
  return new (begin) FixedBlock(begin + OwnBytes(), room);
}

// NOLINTNEXTLINE(readability-non-const-parameter): a hole is made there.
FixedBlock::FixedBlock(char* begin, std::uint64_t bytes) : room_(bytes) {
  if (bytes > 0) holes_ = new (begin) Hole{bytes, nullptr};
}

Allocator FixedBlock::allocator() {
  return Allocator{this,
                   [](void* context, std::size_t bytes, std::size_t alignment) {
                     return static_cast<FixedBlock*>(context)->Take(bytes, alignment);
                   },
                   [](void* context, void* block, std::size_t bytes, std::size_t) {
                     static_cast<FixedBlock*>(context)->Give(block, bytes);
                   }};
}

void* FixedBlock::Take(std::uint64_t bytes, std::uint64_t alignment) {
  const std::lock_guard<std::mutex> lock(mutex_);
  void* block = nullptr;
  const bool small = bytes <= kMostSmall;
  if (bytes <= room_ && alignment <= (small ? kUnit : kAlignment)) {
    block = small ? TakeFromTop(Rounded(bytes)) : TakeFromBottom(Rounded(bytes));
  }
  refused_ = refused_ || block == nullptr;
  return block;
}

void* FixedBlock::TakeFromTop(std::uint64_t bytes) {
  Hole** found = nullptr;
  for (Hole** link = &holes_; *link != nullptr; link = &(*link)->next) {
    if ((*link)->bytes >= bytes) found = link;
  }
  if (found == nullptr) return nullptr;
  Hole* hole = *found;
  hole->bytes -= bytes;
  char* block = hole->end();
  if (hole->bytes == 0) *found = hole->next;
  return block;
}

void* FixedBlock::TakeFromBottom(std::uint64_t bytes) {
  for (Hole** link = &holes_; *link != nullptr; link = &(*link)->next) {
    Hole* hole = *link;
    const auto address = reinterpret_cast<std::uintptr_t>(hole->begin());
    const std::uint64_t before = RoundUp(address, kAlignment) - address;
    if (hole->bytes < before || hole->bytes - before < bytes) continue;
    char* block = hole->begin() + before;
    const std::uint64_t after = hole->bytes - before - bytes;
    Hole* next = hole->next;
    if (after > 0) next = new (block + bytes) Hole{after, next};
    if (before > 0) {
      hole->bytes = before;
      hole->next = next;
    } else {
      *link = next;
    }
    return block;
  }
  return nullptr;
}

void FixedBlock::Give(void* block, std::uint64_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Hole* before = nullptr;
  Hole** link = &holes_;
  while (*link != nullptr && (*link)->begin() < static_cast<char*>(block)) {
    before = *link;
    link = &before->next;
  }
  Hole* hole = new (block) Hole{Rounded(bytes), *link};
  *link = hole;
  if (hole->next != nullptr && hole->end() == hole->next->begin()) {
    hole->bytes += hole->next->bytes;
    hole->next = hole->next->next;
  }
  if (before != nullptr && before->end() == hole->begin()) {
    before->bytes += hole->bytes;
    before->next = hole->next;
  }
}

}  // namespace rewire
