// SPDX-License-Identifier: Apache-2.0
//
// PinnedBlocks: blocks of pinned memory that are free and are kept for the next request.
//
// The driver takes long to pin memory, and waits for all devices when such memory is freed. A result of a
// call in a pipeline is such memory: freed at once, it would stop the calls behind it. So a free block is
// kept while there is a stream, and serves the next request of its size. Blocks in use and free ones together
// are never more than was in use at one time: free blocks that are too many go before a new one is allocated.
//
// Any thread. The functions only keep books: the caller allocates and frees.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <vector>

namespace rewire::cuda {

class PinnedBlocks {
 public:
  // A place for a block of exactly this size.
  struct Place {
    void* block;                // a free one, which is in use from now on; null: the caller allocates it
    std::vector<void*> excess;  // the caller frees them before it allocates
  };
  // Each place without a block is followed by Add, or by Abandon if there is no memory.
  Place Take(std::uint64_t bytes);
  void Add(void* block, std::uint64_t bytes);
  void Abandon(std::uint64_t bytes);
  // A block is not in use any more. Returns what the caller frees; the block may be among it.
  std::vector<void*> Give(void* block);

  void AddStream();
  // With the last stream go all free blocks.
  std::vector<void*> RemoveStream();

 private:
  struct Free {
    void* block;
    std::uint64_t bytes;
  };
  std::vector<void*> Excess();

  std::mutex mutex_;
  std::map<void*, std::uint64_t> used_;
  std::deque<Free> free_;  // in the order in which they became free
  std::uint64_t used_bytes_ = 0;
  std::uint64_t awaited_bytes_ = 0;  // of places whose block is being allocated
  std::uint64_t free_bytes_ = 0;
  std::uint64_t most_ = 0;  // bytes in use at one time, since there are streams
  std::uint64_t streams_ = 0;
};

}  // namespace rewire::cuda
