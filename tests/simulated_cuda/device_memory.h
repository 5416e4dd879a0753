// SPDX-License-Identifier: Apache-2.0
// The memory of one simulated CUDA device. Host code knows it by addresses that it cannot touch: a range that
// is mapped without access. Kernels and copies use a second mapping of the same pages. Addresses of the two
// differ by a constant.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "rewire/tests/simulated_cuda/order.h"

namespace rewire::simulated_cuda {

// Bytes that work reads or writes. `bytes` 0 with `exact` false: from the address on, how many is not known.
struct MemoryUse {
  std::uint64_t address = 0;
  std::size_t bytes = 0;
  bool writes = false;
  bool exact = true;
};

class DeviceMemory {
 public:
  DeviceMemory(int device, std::size_t capacity);

  struct Block {
    std::size_t bytes = 0;   // as asked for
    std::size_t extent = 0;  // with what alignment adds and the guard behind
    bool from_pool = false;
    std::uint64_t id = 0;
    Moment made;
    Clock used;  // all work that used it
    struct Access {
      Moment moment;
      std::size_t offset, bytes;
      bool writes;
    };
    std::vector<Access> accesses;  // the last exact ones
  };
  using Blocks = std::map<std::uint64_t, Block>;

  // Address of `bytes` (0 counts as 1), or 0 without room. From the pool: work at `made` with `before` in
  // front of it. If only memory can be used again that is still in use elsewhere, `wait_for` is what must
  // have happened.
  std::uint64_t Allocate(std::size_t bytes, bool from_pool, Moment made, const Clock& before,
                         std::vector<Moment>* wait_for);
  // Frees at a moment that `before` comes in front of. Without a pool it is free at once.
  void Free(Blocks::iterator block, Moment freed);
  // Contents are changed where the work is run: fresh memory is filled with a pattern, freed memory with
  // another. False if what lies behind the block was written.
  void PoisonFresh(std::uint64_t address, std::size_t bytes) const;
  bool PoisonFreed(std::uint64_t address, std::size_t bytes) const;
  // Gives freed memory of the pool back until `keep` bytes are left, as far as the host knows it to be
  // unused.
  void Trim(std::size_t keep, const Clock& host);

  // The live block that an address lies in or right behind, or end().
  Blocks::iterator Find(std::uint64_t address);
  Blocks& blocks() { return blocks_; }
  // Checks and remembers a use. What is wrong with it goes to `problems`; false if the work cannot be run.
  // Work that should have come first and may not have goes to `missed`.
  bool Use(const MemoryUse& use, Moment moment, const Clock& before, std::vector<std::string>* problems,
           std::vector<Moment>* missed);

  bool Has(std::uint64_t address) const { return address - seen_ < capacity_; }
  std::byte* Touchable(std::uint64_t address) const { return touchable_ + (address - seen_); }
  // The other way round; 0 if the pointer is not to this memory.
  std::uint64_t Seen(const void* pointer) const;

  std::size_t total() const { return limit_; }
  void set_total(std::size_t bytes) { limit_ = bytes < capacity_ ? bytes : capacity_; }
  std::size_t live_bytes() const { return live_bytes_; }
  std::size_t reserved() const { return reserved_; }  // by the pool, alive or kept
  std::size_t taken() const { return taken_; }        // by anything
  std::size_t reserved_high = 0, pool_used = 0, pool_used_high = 0;

 private:
  struct Kept {
    std::uint64_t address;
    std::size_t extent;
    Moment freed;
  };
  void Release(std::uint64_t address, std::size_t extent);
  std::uint64_t TakeFresh(std::size_t extent);

  int device_;
  std::size_t capacity_, limit_;
  std::uint64_t seen_ = 0;
  std::byte* touchable_ = nullptr;
  int file_ = -1;
  Blocks blocks_;
  std::vector<Kept> kept_;
  std::map<std::uint64_t, std::size_t> free_;  // extents that nobody has
  std::size_t live_bytes_ = 0, reserved_ = 0, taken_ = 0;
  std::uint64_t next_id_ = 1;
};

}  // namespace rewire::simulated_cuda
