// SPDX-License-Identifier: Apache-2.0
#include "rewire/tests/hostile/guarded_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define REWIRE_HOSTILE_ASAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define REWIRE_HOSTILE_ASAN 1
#endif
#ifdef REWIRE_HOSTILE_ASAN
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, size) (static_cast<void>(address), static_cast<void>(size))
#define ASAN_UNPOISON_MEMORY_REGION(address, size) (static_cast<void>(address), static_cast<void>(size))
#endif

namespace rewire::hostile {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::byte kPattern{0xA5};
// Looked at in front of and behind a block.
constexpr std::size_t kMargin = 64;

struct SlotClass {
  std::size_t size, count;
};
constexpr SlotClass kClasses[] = {{16 * kPage, 64}, {256 * kPage, 16}, {4096 * kPage, 4}};

[[noreturn]] void Give(const char* what) {
  std::perror(what);
  std::abort();
}

}  // namespace

GuardedMemory::GuardedMemory() {
  for (const SlotClass& slots : kClasses) size_ += slots.count * (slots.size + kPage);
  const int file = memfd_create("guarded", 0);
  if (file < 0 || ftruncate(file, static_cast<off_t>(size_)) != 0) Give("memfd");
  const auto map = [&](int protection) {
    void* pages = mmap(nullptr, size_, protection, MAP_SHARED, file, 0);
    if (pages == MAP_FAILED) Give("mmap");
    return static_cast<std::byte*>(pages);
  };
  write_ = map(PROT_READ | PROT_WRITE);
  read_ = map(PROT_READ);
  close(file);
  std::size_t at = 0;
  for (const SlotClass& slots : kClasses) {
    free_.emplace_back();
    for (std::size_t i = 0; i < slots.count; ++i) {
      free_.back().push_back({at, slots.size});
      at += slots.size;
      for (std::byte* view : {write_, read_}) {
        if (mprotect(view + at, kPage, PROT_NONE) != 0) Give("mprotect");
      }
      at += kPage;
    }
  }
}

GuardedMemory::~GuardedMemory() {
  Release();
  munmap(write_, size_);
  munmap(read_, size_);
}

std::optional<GuardedBlock> GuardedMemory::Take(std::size_t bytes, std::size_t alignment) {
  for (std::size_t which = 0; which < free_.size(); ++which) {
    if (free_[which].empty() || bytes > kClasses[which].size) continue;
    const Slot slot = free_[which].back();
    free_[which].pop_back();
    const std::size_t offset = slot.begin + (slot.size - bytes) / alignment * alignment;
    const Taken taken = {{write_ + offset, read_ + offset, bytes}, slot};
    Mark(taken, true);
    taken_.push_back(taken);
    class_of_.push_back(which);
    return taken.block;
  }
  return std::nullopt;
}

void GuardedMemory::Mark(const Taken& taken, bool poison) const {
  const auto begin = static_cast<std::size_t>(taken.block.write - write_);
  const std::size_t before = std::min(kMargin, begin - taken.slot.begin);
  const std::size_t end = begin + taken.block.bytes;
  const std::size_t after = taken.slot.begin + taken.slot.size - end;
  if (poison) {
    std::memset(write_ + begin - before, static_cast<int>(kPattern), before);
    std::memset(write_ + end, static_cast<int>(kPattern), after);
  }
  for (const std::byte* view : {write_, read_}) {
    if (poison) {
      ASAN_POISON_MEMORY_REGION(view + begin - before, before);
      ASAN_POISON_MEMORY_REGION(view + end, after);
      // A granule of the sanitizer's may reach from one into the other.
      ASAN_UNPOISON_MEMORY_REGION(view + begin, taken.block.bytes);
    } else {
      ASAN_UNPOISON_MEMORY_REGION(view + begin - before, before + taken.block.bytes + after);
    }
  }
}

bool GuardedMemory::IsMarked(const Taken& taken) const {
  const auto begin = static_cast<std::size_t>(taken.block.write - write_);
  const std::size_t before = std::min(kMargin, begin - taken.slot.begin);
  const std::byte* end = taken.block.write + taken.block.bytes;
  const std::byte* slot_end = write_ + taken.slot.begin + taken.slot.size;
  const auto is_pattern = [](std::byte byte) { return byte == kPattern; };
  return std::all_of(taken.block.write - before, taken.block.write, is_pattern) &&
         std::all_of(end, slot_end, is_pattern);
}

bool GuardedMemory::Release() {
  bool intact = true;
  for (std::size_t i = 0; i < taken_.size(); ++i) {
    Mark(taken_[i], false);
    intact = IsMarked(taken_[i]) && intact;
    free_[class_of_[i]].push_back(taken_[i].slot);
  }
  taken_.clear();
  class_of_.clear();
  return intact;
}

}  // namespace rewire::hostile
