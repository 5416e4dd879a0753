// SPDX-License-Identifier: Apache-2.0
//
// Arena: memory of one request, which is let go of as a whole and used again by the next one.
#pragma once

#include <cstddef>
#include <vector>

#include "rewire/serve/core/aligned_memory.h"

namespace rewire::serve {

// Not thread-safe: a request belongs to one thread at a time.
class Arena {
 public:
  // Returns `bytes` of uninitialized memory, aligned to kTensorAlignment; null if there is none. It stays
  // until Reset.
  std::byte* Allocate(std::size_t bytes);
  // Lets go of everything. One block is kept for the next request, if it is not larger than `keep` bytes.
  void Reset(std::size_t keep = std::size_t{64} << 10);

 private:
  struct Block {
    AlignedMemory memory;
    std::size_t size = 0;
  };
  std::vector<Block> blocks_;  // the last one has room from used_ on
  std::size_t used_ = 0;
};

}  // namespace rewire::serve
