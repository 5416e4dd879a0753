// SPDX-License-Identifier: Apache-2.0
// BlockPool: free lists of host memory blocks by size class, in front of a VM's account.
//
// One pool serves objects and storage alike. Sizes round up to a class: multiples of 64 bytes up to 1 KiB,
// then eight classes an octave (at most 12.5 % above what was asked). One thread at a time. Blocks are
// 64-byte aligned, blocks above 1 KiB 128-byte aligned. The table of the larger classes is made when the
// first of them is asked for, so that a VM that has not run yet is small.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/export.h"
#include "vm/memory/memory_account.h"

namespace rewire {

class BlockPool {
 public:
  static constexpr std::uint64_t kMaxBlock = std::uint64_t{1} << 46;
  static constexpr std::uint64_t kMaxSmall = 1024;  // sizes up to here round to multiples of 64

  // In the body: the members stand in the order in which a run touches them.
  explicit BlockPool(MemoryAccount* account) : account_(account) { classes_ = small_classes_.data(); }
  ~BlockPool();
  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;

  // The size of the block that a request gets. `bytes` is at most kMaxBlock.
  static std::uint64_t BlockBytes(std::uint64_t bytes) {
    return bytes <= kMaxSmall ? (bytes + (bytes == 0) + 63) & ~std::uint64_t{63} : ClassBytes(ClassOf(bytes));
  }
  static constexpr std::uint64_t BlockAlignment(std::uint64_t block_bytes) {
    return block_bytes > kMaxSmall ? 128 : 64;
  }

  // A block of BlockBytes(bytes), contents undefined; null when the limit or the allocator says no, after the
  // free lists have been emptied to make room.
  void* Take(std::uint64_t bytes) {
    const std::uint32_t index = ClassOf(bytes);
    if (__builtin_expect(index >= class_count_, 0)) return TakeNew(index);
    SizeClass& entry = classes_[index];
    FreeBlock* block = entry.free;
    if (__builtin_expect(block == nullptr, 0)) return TakeNew(index);
    entry.free = block->next;
    NoteTaken(entry);
    return block;
  }
  // The same for a size from 1 to kMaxSmall.
  void* TakeSmall(std::uint64_t bytes) {
    const auto index = static_cast<std::uint32_t>((bytes - 1) >> 6);
    SizeClass& entry = classes_[index];
    FreeBlock* block = entry.free;
    if (__builtin_expect(block == nullptr, 0)) return TakeNew(index);
    entry.free = block->next;
    NoteTaken(entry);
    return block;
  }
  // Keeps a block that Take gave for the same size.
  void Give(void* memory, std::uint64_t bytes) {
    SizeClass& entry = classes_[ClassOf(bytes)];
    auto* block = static_cast<FreeBlock*>(memory);
    block->next = entry.free;
    entry.free = block;
    --entry.live;
  }
  // A block has left this pool's care (its holder will free it through the account).
  void Forget(std::uint64_t bytes) { --classes_[ClassOf(bytes)].live; }
  // Whether a block of this size could be this pool's again: Release may have given the table back.
  bool CanRemember(std::uint64_t bytes) const { return ClassOf(bytes) < class_count_; }
  // The reverse of Forget: a block that had left is this pool's again.
  void Remember(std::uint64_t bytes) { NoteTaken(classes_[ClassOf(bytes)]); }

  // Between two calls: frees what the call that ends here did not need at its peak, class by class, and
  // begins anew.
  void TrimToPeak();
  // Frees every free block.
  void Trim();
  // Frees every free block and, when no block is out, the table of classes.
  void Release();

 private:
  struct FreeBlock {
    FreeBlock* next;
  };
  struct SizeClass {
    FreeBlock* free = nullptr;
    std::int32_t live = 0;
    std::int32_t peak = 0;  // of live, since the last TrimToPeak
  };
  static constexpr std::uint32_t kSmallClasses = 16;
  static constexpr std::uint32_t kSubClasses = 8;
  static constexpr std::uint32_t kClasses = kSmallClasses + (46 - 10) * kSubClasses;

 public:
  // What the table of the larger classes takes.
  static constexpr std::uint64_t kTableBytes = kClasses * sizeof(SizeClass);

 private:
  static std::uint32_t ClassOf(std::uint64_t bytes) {
    if (bytes <= kMaxSmall) return bytes == 0 ? 0 : static_cast<std::uint32_t>((bytes - 1) >> 6);
    // The octave is that of bytes-1, so that a power of two ends its own octave; three bits below select the
    // class.
    const std::uint32_t octave = 63 - static_cast<std::uint32_t>(__builtin_clzll(bytes - 1));
    return kSmallClasses + (octave - 10) * kSubClasses +
           static_cast<std::uint32_t>((bytes - 1) >> (octave - 3) & (kSubClasses - 1));
  }
  REWIRE_API static std::uint64_t ClassBytes(std::uint32_t index);
  static void NoteTaken(SizeClass& entry) {
    if (++entry.live > entry.peak) entry.peak = entry.live;
  }
  void* TakeNew(std::uint32_t index);
  void FreeDown(std::uint32_t index, std::int32_t keep);

  bool MakeLargeClasses();
  template <typename Visit>
  void ForEachUsedClass(Visit visit);

  MemoryAccount* account_;
  SizeClass* classes_ = nullptr;
  std::uint32_t class_count_ = kSmallClasses;  // kClasses once the large ones exist
  std::array<std::uint64_t, (kClasses + 63) / 64>
      used_{};  // bit i: class i has been taken from; bounds the sweeps
  std::array<SizeClass, kSmallClasses> small_classes_{};
};

}  // namespace rewire
