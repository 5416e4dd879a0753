// SPDX-License-Identifier: Apache-2.0
//
// BlockPool: free lists of host memory blocks by size class, in front of a VM's account.
//
// One pool serves objects and storage. Sizes are rounded up to a class: multiples of 64 bytes up to 1 KiB,
// then eight classes per power of two (at most 12.5 % more than requested). Blocks are 64-byte aligned, and
// blocks above 1 KiB 128-byte aligned. The table of the larger classes is made with the first request for
// one, so that a VM that has not run yet is small. One thread at a time.
//
// The pool keeps blocks that a call gives back for later calls. Of every class it keeps as many blocks as one
// of the last calls used at once. So alternating shapes allocate nothing once each of them has been seen.
// EndOfCall limits how many calls are remembered and how much memory is kept.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "rewire/base/assert.h"
#include "rewire/base/export.h"
#include "rewire/base/likely.h"
#include "rewire/vm/memory/memory_account.h"

namespace rewire {

class BlockPool {
 public:
  static constexpr std::uint64_t kMaxBlock = std::uint64_t{1} << 46;
  static constexpr std::uint64_t kMaxSmall = 1024;  // sizes up to this one are rounded to multiples of 64

  // Defined in the class body, because the members are ordered as a run touches them.
  explicit BlockPool(MemoryAccount* account) : account_(account) {}
  ~BlockPool();
  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;

  // The size of the block that a request gets. `bytes` must be at most kMaxBlock.
  static std::uint64_t BlockBytes(std::uint64_t bytes) {
    return bytes <= kMaxSmall ? (bytes + (bytes == 0) + 63) & ~std::uint64_t{63} : ClassBytes(ClassOf(bytes));
  }
  // The alignment of the block that a request gets.
  static constexpr std::uint64_t BlockAlignment(std::uint64_t bytes) { return bytes > kMaxSmall ? 128 : 64; }

  // Takes a block of BlockBytes(bytes), with undefined contents. Returns null if `bytes` is above kMaxBlock,
  // or if the limit or the allocator refuses even after the free lists have been emptied.
  void* Take(std::uint64_t bytes) {
    const std::uint32_t index = ClassOf(bytes);
    if (REWIRE_UNLIKELY(!HasClass(index))) return TakeNew(index);
    SizeClass& entry = ClassAt(index);
    FreeBlock* block = entry.free;
    if (REWIRE_UNLIKELY(block == nullptr)) return TakeNew(index);
    entry.free = block->next;
    NoteTaken(entry);
    return block;
  }
  // The same for sizes from 1 to kMaxSmall.
  void* TakeSmall(std::uint64_t bytes) {
    const auto index = static_cast<std::uint32_t>((bytes - 1) >> 6);
    SizeClass& entry = small_classes_[index];
    FreeBlock* block = entry.free;
    if (REWIRE_UNLIKELY(block == nullptr)) return TakeNewSmall(index);
    entry.free = block->next;
    NoteTaken(entry);
    return block;
  }
  // Keeps a block that Take returned for the same size.
  void Give(void* memory, std::uint64_t bytes) { Put(ClassAt(ClassOf(bytes)), memory); }
  // The same for sizes from 1 to kMaxSmall.
  void GiveSmall(void* memory, std::uint64_t bytes, std::uint64_t mark = 0) {
    Put(small_classes_[(bytes - 1) >> 6], memory, mark);
  }
  // Takes blocks from the allocator until `count` of this size, which is at most kMaxSmall, are free. Takes
  // none that the limit has no room for. The pool keeps them as if the current call had used them all.
  void Reserve(std::uint64_t bytes, std::uint32_t count);
  // The mark that a block was given back with, or 0: of a block that was just taken, before anything is
  // written to it. All behind the mark is as it was when the block was given back.
  static std::uint64_t MarkOf(const void* block) { return static_cast<const FreeBlock*>(block)->mark; }
  // Tells the pool that a block left it: its holder will free it through the account.
  void Detach(std::uint64_t bytes) {
    SizeClass& entry = ClassAt(ClassOf(bytes));
    REWIRE_ASSERT(entry.live > 0, "a block leaves a class that has {} out", entry.live);
    --entry.live;
  }
  // True if a block of this size can become the pool's again. It cannot after Release has freed the table.
  bool CanAttach(std::uint64_t bytes) const { return HasClass(ClassOf(bytes)); }
  // The inverse of Detach: a block that had left belongs to the pool again.
  void Attach(std::uint64_t bytes) {
    REWIRE_ASSERT(CanAttach(bytes), "a block of {} bytes comes back to a pool without its class", bytes);
    const std::uint32_t index = ClassOf(bytes);
    // The table may be another one than that which the block left.
    NoteUsed(index);
    NoteTaken(ClassAt(index));
  }

  // How many calls a class remembers. It keeps as many blocks as it used at its peak in at least the last
  // kRemembered calls, and at most the last 2 * kRemembered - 1.
  static constexpr std::uint32_t kRemembered = 16;
  // All classes together keep at most this many times the peak of one of those calls. If different shapes
  // fill different classes beyond that, all calls but the last are forgotten.
  static constexpr std::uint64_t kMostKept = 4;
  // Called between two calls: frees blocks that no class needs to keep any more.
  void EndOfCall() {
    if (took_) {
      NoteCall();
    } else if (++calls_ == kRemembered) {
      FreeForgotten();
    }
  }
  // Frees every free block.
  void Trim();
  // Frees the table of the larger classes if none of their blocks is in use or free.
  void DropEmptyTable();
  // Frees every free block. If no block is in use, also frees the table of classes.
  void Release();

 private:
  struct FreeBlock {
    FreeBlock* next;
    std::uint64_t mark;
  };
  struct SizeClass {
    FreeBlock* free = nullptr;
    std::int32_t live = 0;
    std::int32_t peak = 0;  // of live, in the current call
  };
  // The peaks of earlier calls. They are recorded in windows of kRemembered calls; the previous window
  // counts, too.
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
  static constexpr std::uint32_t kLargeClasses = (46 - 10) * kSubClasses;
  static constexpr std::uint32_t kClasses = kSmallClasses + kLargeClasses;
  struct LargeClasses {
    std::array<SizeClass, kLargeClasses> classes;
    std::array<Peaks, kLargeClasses> peaks;
  };

 public:
  // Size of the table of the larger classes.
  static constexpr std::uint64_t kTableBytes = sizeof(LargeClasses);

 private:
  static std::uint32_t ClassOf(std::uint64_t bytes) {
    if (bytes <= kMaxSmall) return bytes == 0 ? 0 : static_cast<std::uint32_t>((bytes - 1) >> 6);
    // The octave is that of bytes-1, so that a power of two ends its own octave; three bits below select the
    // class.
    const std::uint32_t octave = 63 - static_cast<std::uint32_t>(__builtin_clzll(bytes - 1));
    // Sizes above kMaxBlock get numbers from kClasses on, which no table has.
    return kSmallClasses + (octave - 10) * kSubClasses +
           static_cast<std::uint32_t>((bytes - 1) >> (octave - 3) & (kSubClasses - 1));
  }
  REWIRE_API static std::uint64_t ClassBytes(std::uint32_t index);
  void NoteTaken(SizeClass& entry) {
    took_ = true;
    if (++entry.live > entry.peak) entry.peak = entry.live;
  }
  void NoteUsed(std::uint32_t index) { used_[index / 64] |= std::uint64_t{1} << (index % 64); }
  static void Put(SizeClass& entry, void* memory, std::uint64_t mark = 0) {
    REWIRE_ASSERT(entry.live > 0, "a block is given back to a class that has {} out", entry.live);
    auto* block = static_cast<FreeBlock*>(memory);
    block->next = entry.free;
    block->mark = mark;
    entry.free = block;
    --entry.live;
  }
  void* TakeNew(std::uint32_t index);
  void* TakeNewSmall(std::uint32_t index);
  [[gnu::cold]] void FreeDown(std::uint32_t index, std::int32_t keep);

  bool HasClass(std::uint32_t index) const {
    return index < kSmallClasses || (large_ != nullptr && index < kClasses);
  }
  SizeClass& ClassAt(std::uint32_t index) {
    return index < kSmallClasses ? small_classes_[index] : large_->classes[index - kSmallClasses];
  }
  Peaks& PeaksAt(std::uint32_t index) {
    return index < kSmallClasses ? small_peaks_[index] : large_->peaks[index - kSmallClasses];
  }
  void NoteCall();
  // Forgets all calls but one, whose peaks these are.
  void RememberOnly(std::uint64_t call_bytes, const std::int32_t* peaks);
  bool MakeLargeClasses();
  void FreeTable();
  [[gnu::cold]] void FreeForgotten();  // in one call of kRemembered
  template <typename Visit>
  void ForEachUsedClass(Visit visit);

  MemoryAccount* account_;
  LargeClasses* large_ = nullptr;
  // Whether the current call has taken blocks. Otherwise there is nothing to remember of it: it used what
  // calls before it left in use.
  bool took_ = false;
  std::array<std::uint64_t, (kClasses + 63) / 64>
      used_{};  // bit i: class i has been used; limits the loops over classes
  std::array<SizeClass, kSmallClasses> small_classes_{};
  std::array<Peaks, kSmallClasses> small_peaks_{};
  Remembered<std::uint64_t> call_bytes_;  // of whole calls: the sum of the peaks of their classes
  std::uint32_t calls_ = 0;               // in the current window
};

}  // namespace rewire
