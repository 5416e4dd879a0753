// SPDX-License-Identifier: Apache-2.0
//
// SpareBlocks: where the arrays of a VM take their memory from and return it to.
//
// A VM with a byte limit starts each run with empty arrays, so that a run takes the same memory whatever ran
// before. Meanwhile the blocks of the arrays wait here. The next run takes them again, or they are freed if
// something else needs the room. Without a limit the arrays keep their memory, and nothing waits. One thread
// at a time.
#pragma once

#include <cstdint>
#include <new>
#include <utility>

#include "rewire/vm/memory/memory_account.h"

namespace rewire {

class SpareBlocks {
 public:
  explicit SpareBlocks(MemoryAccount* account) : account_(account) {}
  ~SpareBlocks() { Free(); }
  SpareBlocks(const SpareBlocks&) = delete;
  SpareBlocks& operator=(const SpareBlocks&) = delete;

  // Takes a block of exactly this many bytes, at least sizeof(Block). Returns null if there is no memory.
  void* Take(std::uint64_t bytes) {
    for (Block** link = &first_; *link != nullptr; link = &(*link)->next) {
      Block* block = *link;
      if (block->bytes != bytes) continue;
      *link = block->next;
      return block;
    }
    return account_->Allocate(bytes, kAlignment);
  }
  void Give(void* memory, std::uint64_t bytes) {
    if (!keeps_) return account_->Free(memory, bytes, kAlignment);
    first_ = new (memory) Block{first_, bytes, run_};
  }

  // Sets whether blocks that are returned wait here.
  void Keep(bool keeps) {
    keeps_ = keeps;
    if (!keeps) Free();
  }
  // An array has more than the least memory, so it may shrink. `has_large` tells whether one has had since
  // the last ForgetLarge.
  void NoteLarge() { large_ = true; }
  void ForgetLarge() { large_ = false; }
  bool has_large() const { return large_; }

  // Called when a run begins; its arrays have returned their blocks.
  void BeginRun() { ++run_; }
  // Called when a run ends: frees blocks that it did not use.
  void EndRun() {
    FreeIf([this](const Block& block) { return block.run != run_; });
  }
  void Free() {
    FreeIf([](const Block&) { return true; });
  }

  struct Block {
    Block* next;
    std::uint64_t bytes;
    std::uint64_t run;  // the run in which it was returned
  };

 private:
  static constexpr std::uint64_t kAlignment = 64;

  template <typename Goes>
  void FreeIf(Goes goes) {
    for (Block** link = &first_; *link != nullptr;) {
      Block* block = *link;
      if (goes(*block)) {
        *link = block->next;
        account_->Free(block, block->bytes, kAlignment);
      } else {
        link = &block->next;
      }
    }
  }

  MemoryAccount* account_;
  Block* first_ = nullptr;
  bool keeps_ = false;
  bool large_ = false;
  std::uint64_t run_ = 0;
};

}  // namespace rewire
