// SPDX-License-Identifier: Apache-2.0
// Memory that shows every access outside it: each block ends at a page that nobody may touch, what lies
// around it in its own page is poisoned for the address sanitizer and holds a pattern that is looked at
// afterwards. Every block has a second address under which it can be read alone, so that a write to what is
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
  // The blocks' address space; pages are taken as they are used. Not shared with a child process that is to
  // use memory of its own.
  GuardedMemory();
  ~GuardedMemory();
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;

  // Nothing when blocks of that size are all taken or it is above 16 MB. Contents are zero or old.
  std::optional<GuardedBlock> Take(std::size_t bytes, std::size_t alignment);
  // Takes all blocks back. False: something was written beside one.
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
