// SPDX-License-Identifier: Apache-2.0
// BlockPool: free lists of host memory blocks by size class, in front of a VM's account.
//
// One pool serves objects and storage alike. Sizes round up to a class: multiples of 64 bytes up to 1 KiB,
// then eight classes an octave (at most 12.5 % above what was asked). One thread at a time. Blocks are
// 64-byte aligned, blocks above 1 KiB 128-byte aligned. The table of the larger classes is made when the
// first of them is asked for, so that a VM that has not run yet is small.
//
// What a call gives back stays for the next ones, so that shapes that come in turn allocate nothing once each
// of them has been seen: of every class as many blocks as one of the last calls had at once. EndOfCall says
// how many calls, and how much that may come to.
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
  explicit BlockPool(MemoryAccount* account) : account_(account) { UseSmallClasses(); }
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
  void Give(void* memory, std::uint64_t bytes) { Put(classes_[ClassOf(bytes)], memory); }
  // The same for a size from 1 to kMaxSmall.
  void GiveSmall(void* memory, std::uint64_t bytes) { Put(classes_[(bytes - 1) >> 6], memory); }
  // A block has left this pool's care (its holder will free it through the account).
  void Forget(std::uint64_t bytes) { --classes_[ClassOf(bytes)].live; }
  // Whether a block of this size could be this pool's again: Release may have given the table back.
  bool CanRemember(std::uint64_t bytes) const { return ClassOf(bytes) < class_count_; }
  // The reverse of Forget: a block that had left is this pool's again.
  void Remember(std::uint64_t bytes) { NoteTaken(classes_[ClassOf(bytes)]); }

  // A class keeps as many blocks as it had out at its peak in one of the last kRemembered calls at least, and
  // of the last 2 * kRemembered - 1 at most.
  static constexpr std::uint32_t kRemembered = 16;
  // All classes together keep at most so many times what one of those calls had out, as far as the calls'
  // peaks go: when different shapes fill different classes beyond that, all but the last call are forgotten.
  static constexpr std::uint64_t kMostKept = 4;
  // Between two calls: frees what no class keeps any more.
  void EndOfCall();
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
    std::int32_t peak = 0;  // of live, in this call
  };
  // The peaks of earlier calls. Windows of kRemembered calls follow each other; the one before counts too.
  template <typename Peak>
  struct Remembered {
    Peak window{};
    Peak before{};
    Peak most() const { return window > before ? window : before; }
    void Note(Peak peak) {
      if (peak > window) window = peak;
    }
    void NextWindow() {
      before = window;
      window = {};
    }
  };
  using Peaks = Remembered<std::int32_t>;
  static constexpr std::uint32_t kSmallClasses = 16;
  static constexpr std::uint32_t kSubClasses = 8;
  static constexpr std::uint32_t kClasses = kSmallClasses + (46 - 10) * kSubClasses;

 public:
  // What the table of the larger classes takes.
  static constexpr std::uint64_t kTableBytes = kClasses * (sizeof(SizeClass) + sizeof(Peaks));

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
  static void Put(SizeClass& entry, void* memory) {
    auto* block = static_cast<FreeBlock*>(memory);
    block->next = entry.free;
    entry.free = block;
    --entry.live;
  }
  void* TakeNew(std::uint32_t index);
  void FreeDown(std::uint32_t index, std::int32_t keep);

  void UseSmallClasses() {
    classes_ = small_classes_.data();
    peaks_ = small_peaks_.data();
    class_count_ = kSmallClasses;
  }
  bool MakeLargeClasses();
  void FreeForgotten();
  template <typename Visit>
  void ForEachUsedClass(Visit visit);

  MemoryAccount* account_;
  SizeClass* classes_ = nullptr;
  Peaks* peaks_ = nullptr;                     // by class
  std::uint32_t class_count_ = kSmallClasses;  // kClasses once the large ones exist
  std::array<std::uint64_t, (kClasses + 63) / 64>
      used_{};  // bit i: class i has been taken from; bounds the sweeps
  std::array<SizeClass, kSmallClasses> small_classes_{};
  std::array<Peaks, kSmallClasses> small_peaks_{};
  Remembered<std::uint64_t> call_bytes_;  // of whole calls: their classes' peaks added up
  std::uint32_t calls_ = 0;               // in this window
};

}  // namespace rewire
