// SPDX-License-Identifier: Apache-2.0
// Memory blocks that reveal every access outside them.
//
// A page that nobody may touch follows the pages of each block, and the block ends as close to it as its
// alignment allows. The bytes beside the block (up to 64 in front, and all behind it up to that page) are
// poisoned for the address sanitizer. They also hold a pattern, which Release checks, so it finds writes
// without the sanitizer too.
//
// Every block also has a second address, at which it can only be read. So a write to memory that should be
// const faults.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace rewire::hostile {

struct GuardedBlock {
  std::byte* write = nullptr;
  std::byte* read = nullptr;  // the same bytes; a write here ends the process
  std::size_t bytes = 0;
};

class GuardedMemory {
 public:
  // Reserves address space for the blocks; pages are taken as they are used. A child process shares these
  // pages, so a child that needs memory of its own must make its own object.
  GuardedMemory();
  ~GuardedMemory();
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;

  // nullopt if all blocks of that size are taken, or if it is above 16 MB. Contents are zero or old.
  std::optional<GuardedBlock> Take(std::size_t bytes, std::size_t alignment);
  // Takes all blocks back. Returns false if something was written beside a block.
  bool Release();

 private:
  struct Slot {
    std::size_t begin, size;  // without the guard page
  };
  struct Taken {
    GuardedBlock block;
    Slot slot;
  };
  void Mark(const Taken& taken, bool poison) const;
  bool IsMarked(const Taken& taken) const;

  std::byte* write_ = nullptr;
  std::byte* read_ = nullptr;
  std::size_t size_ = 0;
  std::vector<std::vector<Slot>> free_;  // by class
  std::vector<std::size_t> class_of_;    // of taken_
  std::vector<Taken> taken_;
};

}  // namespace rewire::hostile
