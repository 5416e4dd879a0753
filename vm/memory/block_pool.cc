// SPDX-License-Identifier: Apache-2.0
#include "rewire/vm/memory/block_pool.h"

#include <algorithm>
#include <new>

namespace rewire {

std::uint64_t BlockPool::ClassBytes(std::uint32_t index) {
  if (index < kSmallClasses) return std::uint64_t{64} * (index + 1);
  const std::uint32_t octave = 10 + (index - kSmallClasses) / kSubClasses;
  const std::uint64_t step = std::uint64_t{1} << (octave - 3);
  return (std::uint64_t{1} << octave) + step * ((index - kSmallClasses) % kSubClasses + 1);
}

BlockPool::~BlockPool() {
  Trim();
  FreeTable();
}

[[gnu::cold]] void BlockPool::Release() {
  Trim();
  bool any_out = false;
  ForEachUsedClass([&](std::uint32_t index) {
    SizeClass& entry = ClassAt(index);
    entry.peak = entry.live;
    PeaksAt(index) = {};
    any_out = any_out || entry.live != 0;
  });
  call_bytes_ = {};
  calls_ = 0;
  if (!any_out) FreeTable();
}

[[gnu::cold]] bool BlockPool::MakeLargeClasses() {
  void* table = account_->Allocate(kTableBytes, 64);
  if (table == nullptr) return false;
  large_ = new (table) LargeClasses{};
  return true;
}

[[gnu::cold]] void BlockPool::FreeTable() {
  if (large_ != nullptr) account_->Free(large_, kTableBytes, 64);
  large_ = nullptr;
  used_ = {used_[0] & ((std::uint64_t{1} << kSmallClasses) - 1)};
}

[[gnu::cold]] void BlockPool::DropEmptyTable() {
  bool any = false;
  ForEachUsedClass([&](std::uint32_t index) {
    const SizeClass& entry = ClassAt(index);
    any = any || (index >= kSmallClasses && (entry.live != 0 || entry.free != nullptr));
  });
  if (!any) FreeTable();
}

void* BlockPool::TakeNewSmall(std::uint32_t index) {
  void* block = account_->Allocate(std::uint64_t{64} * (index + 1), 64);
  if (block == nullptr) return nullptr;
  static_cast<FreeBlock*>(block)->mark = 0;
  NoteUsed(index);
  NoteTaken(small_classes_[index]);
  return block;
}

void* BlockPool::TakeNew(std::uint32_t index) {
  if (index < kSmallClasses) return TakeNewSmall(index);
  // A request above kMaxBlock lies past the last class. Sizes that a program computes, plus their alignment,
  // arrive here unchecked.
  if (index >= kClasses) return nullptr;
  if (!HasClass(index) && !MakeLargeClasses()) return nullptr;
  const std::uint64_t bytes = ClassBytes(index);
  void* block = account_->Allocate(bytes, BlockAlignment(bytes));
  if (block == nullptr) return nullptr;
  // The account may have had the pool make room, which may have dropped the table.
  if (!HasClass(index) && !MakeLargeClasses()) {
    account_->Free(block, bytes, BlockAlignment(bytes));
    return nullptr;
  }
  static_cast<FreeBlock*>(block)->mark = 0;
  NoteUsed(index);
  NoteTaken(ClassAt(index));
  return block;
}

[[gnu::cold]] void BlockPool::Reserve(std::uint64_t bytes, std::uint32_t count) {
  const std::uint32_t index = ClassOf(bytes);
  REWIRE_ASSERT(index < kSmallClasses, "blocks of {} bytes are reserved", bytes);
  std::uint32_t missing = count;
  for (const FreeBlock* free = small_classes_[index].free; free != nullptr && missing > 0; free = free->next)
    --missing;
  // Without a limit, no sum is near it.
  if (account_->used() + std::uint64_t{missing} * ClassBytes(index) > account_->limit()) return;
  for (; missing > 0; --missing) {
    void* const block = TakeNew(index);
    if (block == nullptr) return;
    Put(small_classes_[index], block);
  }
  SizeClass& entry = small_classes_[index];
  entry.peak = std::max(entry.peak, entry.live + static_cast<std::int32_t>(count));
  took_ = true;
}

template <typename Visit>
void BlockPool::ForEachUsedClass(Visit visit) {
  const std::size_t words = large_ == nullptr ? 1 : used_.size();  // the small classes are in the first
  for (std::size_t word = 0; word < words; ++word) {
    for (std::uint64_t bits = used_[word]; bits != 0; bits &= bits - 1) {
      visit(static_cast<std::uint32_t>(word * 64 + static_cast<std::size_t>(__builtin_ctzll(bits))));
    }
  }
}

void BlockPool::FreeDown(std::uint32_t index, std::int32_t keep) {
  // Keeps the first `keep` blocks of the list: those used last, warm in the cache.
  const std::uint64_t bytes = ClassBytes(index);
  FreeBlock** link = &ClassAt(index).free;
  for (; keep > 0 && *link != nullptr; --keep) link = &(*link)->next;
  FreeBlock* block = *link;
  *link = nullptr;
  while (block != nullptr) {
    FreeBlock* next = block->next;
    account_->Free(block, bytes, BlockAlignment(bytes));
    block = next;
  }
}

[[gnu::cold]] void BlockPool::RememberOnly(std::uint64_t call_bytes, const std::int32_t* peaks) {
  call_bytes_ = {call_bytes, 0};
  ForEachUsedClass([&](std::uint32_t index) { PeaksAt(index) = {peaks[index], 0}; });
}

void BlockPool::NoteCall() {
  took_ = false;
  std::uint64_t call_bytes = 0;
  std::uint64_t kept_bytes = 0;
  std::int32_t peaks[kClasses];  // of this call, of the classes in use
  ForEachUsedClass([&](std::uint32_t index) {
    SizeClass& entry = ClassAt(index);
    Peaks& remembered = PeaksAt(index);
    const std::uint64_t bytes = index < kSmallClasses ? std::uint64_t{64} * (index + 1) : ClassBytes(index);
    peaks[index] = entry.peak;
    remembered.Note(entry.peak);
    call_bytes += bytes * static_cast<std::uint64_t>(entry.peak);
    kept_bytes += bytes * static_cast<std::uint64_t>(remembered.most());
    entry.peak = entry.live;
  });
  call_bytes_.Note(call_bytes);
  const bool too_much = kept_bytes > kMostKept * call_bytes_.most();
  if (too_much) RememberOnly(call_bytes, peaks);
  if (++calls_ == kRemembered || too_much) FreeForgotten();
}

// A window ends here.
void BlockPool::FreeForgotten() {
  calls_ = 0;
  call_bytes_.NextWindow();
  ForEachUsedClass([this](std::uint32_t index) {
    Peaks& remembered = PeaksAt(index);
    remembered.NextWindow();
    const SizeClass& entry = ClassAt(index);
    if (entry.free != nullptr) FreeDown(index, remembered.before - entry.live);
  });
}

void BlockPool::Trim() {
  ForEachUsedClass([this](std::uint32_t index) { FreeDown(index, 0); });
}

}  // namespace rewire
