// SPDX-License-Identifier: Apache-2.0
#include "rewire/devices/cuda/pinned_blocks.h"

#include <algorithm>

namespace rewire::cuda {

PinnedBlocks::Place PinnedBlocks::Take(std::uint64_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  // The last one that became free is the likeliest to be in a cache of the CPU.
  const auto found =
      std::find_if(free_.rbegin(), free_.rend(), [=](const Free& each) { return each.bytes == bytes; });
  if (found == free_.rend()) {
    awaited_bytes_ += bytes;
    return {nullptr, Excess()};
  }
  void* block = found->block;
  free_.erase(std::prev(found.base()));
  free_bytes_ -= bytes;
  used_[block] = bytes;
  used_bytes_ += bytes;
  return {block, {}};
}

void PinnedBlocks::Add(void* block, std::uint64_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  awaited_bytes_ -= bytes;
  used_[block] = bytes;
  used_bytes_ += bytes;
  most_ = std::max(most_, used_bytes_);
}

void PinnedBlocks::Abandon(std::uint64_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  awaited_bytes_ -= bytes;
}

std::vector<void*> PinnedBlocks::Give(void* block) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = used_.find(block);
  if (found == used_.end()) return {block};
  const std::uint64_t bytes = found->second;
  used_.erase(found);
  used_bytes_ -= bytes;
  free_.push_back({block, bytes});
  free_bytes_ += bytes;
  return Excess();
}

void PinnedBlocks::AddStream() {
  const std::lock_guard<std::mutex> lock(mutex_);
  ++streams_;
}

std::vector<void*> PinnedBlocks::RemoveStream() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (--streams_ == 0) most_ = used_bytes_;
  return Excess();
}

// Takes the oldest free blocks out that are too many.
std::vector<void*> PinnedBlocks::Excess() {
  std::vector<void*> freed;
  const std::uint64_t held = used_bytes_ + awaited_bytes_;
  const std::uint64_t most = std::max(most_, held);
  while (!free_.empty() && (streams_ == 0 || held + free_bytes_ > most)) {
    freed.push_back(free_.front().block);
    free_bytes_ -= free_.front().bytes;
    free_.pop_front();
  }
  return freed;
}

}  // namespace rewire::cuda
