// SPDX-License-Identifier: Apache-2.0
#include "vm/memory/block_pool.h"

#include <memory>

namespace rewire {

std::uint64_t BlockPool::ClassBytes(std::uint32_t index) {
  if (index < kSmallClasses) return std::uint64_t{64} * (index + 1);
  const std::uint32_t octave = 10 + (index - kSmallClasses) / kSubClasses;
  const std::uint64_t step = std::uint64_t{1} << (octave - 3);
  return (std::uint64_t{1} << octave) + step * ((index - kSmallClasses) % kSubClasses + 1);
}

BlockPool::~BlockPool() {
  Trim();
  if (class_count_ == kClasses) account_->Free(classes_, kClasses * sizeof(SizeClass), 64);
}

void BlockPool::Release() {
  Trim();
  bool any_out = false;
  ForEachUsedClass([&](std::uint32_t index) {
    classes_[index].peak = classes_[index].live;
    any_out = any_out || classes_[index].live != 0;
  });
  if (any_out || class_count_ != kClasses) return;
  account_->Free(classes_, kClasses * sizeof(SizeClass), 64);
  small_classes_ = {};
  used_ = {};
  classes_ = small_classes_.data();
  class_count_ = kSmallClasses;
}

bool BlockPool::MakeLargeClasses() {
  void* table = account_->Allocate(kClasses * sizeof(SizeClass), 64);
  if (table == nullptr) return false;
  auto* classes = static_cast<SizeClass*>(table);
  std::uninitialized_copy(small_classes_.begin(), small_classes_.end(), classes);
  std::uninitialized_value_construct(classes + kSmallClasses, classes + kClasses);
  classes_ = classes;
  class_count_ = kClasses;
  return true;
}

void* BlockPool::TakeNew(std::uint32_t index) {
  if (index >= class_count_ && !MakeLargeClasses()) return nullptr;
  const std::uint64_t bytes = ClassBytes(index);
  void* block = account_->Allocate(bytes, BlockAlignment(bytes));
  if (block == nullptr) {
    Trim();
    block = account_->Allocate(bytes, BlockAlignment(bytes));
    if (block == nullptr) return nullptr;
  }
  used_[index / 64] |= std::uint64_t{1} << (index % 64);
  NoteTaken(classes_[index]);
  return block;
}

template <typename Visit>
void BlockPool::ForEachUsedClass(Visit visit) {
  for (std::uint32_t word = 0; word < used_.size(); ++word) {
    for (std::uint64_t bits = used_[word]; bits != 0; bits &= bits - 1) {
      visit(word * 64 + static_cast<std::uint32_t>(__builtin_ctzll(bits)));
    }
  }
}

void BlockPool::FreeDown(std::uint32_t index, std::int32_t keep) {
  // Keeps the first `keep` blocks of the list: those used last, warm in the cache.
  const std::uint64_t bytes = ClassBytes(index);
  FreeBlock** link = &classes_[index].free;
  for (; keep > 0 && *link != nullptr; --keep) link = &(*link)->next;
  FreeBlock* block = *link;
  *link = nullptr;
  while (block != nullptr) {
    FreeBlock* next = block->next;
    account_->Free(block, bytes, BlockAlignment(bytes));
    block = next;
  }
}

void BlockPool::TrimToPeak() {
  ForEachUsedClass([this](std::uint32_t index) {
    SizeClass& entry = classes_[index];
    if (entry.free != nullptr) FreeDown(index, entry.peak - entry.live);
    entry.peak = entry.live;
  });
}

void BlockPool::Trim() {
  ForEachUsedClass([this](std::uint32_t index) { FreeDown(index, 0); });
}

}  // namespace rewire
