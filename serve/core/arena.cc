// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/core/arena.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace rewire::serve {
namespace {

// malloc keeps blocks of this size, with their alignment, for each thread. Larger ones take it longer.
constexpr std::size_t kSmallestBlock = 960;

}  // namespace

std::byte* Arena::Allocate(std::size_t bytes) {
  if (bytes > std::numeric_limits<std::size_t>::max() / 4) return nullptr;
  const std::size_t rounded = (bytes + kTensorAlignment - 1) / kTensorAlignment * kTensorAlignment;
  if (blocks_.empty() || blocks_.back().size - used_ < rounded) {
    const std::size_t size = std::max({rounded, kSmallestBlock, blocks_.empty() ? 0 : blocks_.back().size});
    AlignedMemory block = AllocateAligned(size);
    if (block == nullptr) return nullptr;
    blocks_.push_back({std::move(block), size});
    used_ = 0;
  }
  std::byte* const taken = blocks_.back().memory.get() + used_;
  used_ += rounded;
  return taken;
}

void Arena::Reset(std::size_t keep) {
  used_ = 0;
  if (blocks_.empty()) return;
  if (blocks_.size() > 1) {
    // The last one is the largest.
    blocks_.front() = std::move(blocks_.back());
    blocks_.resize(1);
  }
  if (blocks_.front().size > keep) blocks_.clear();
}

}  // namespace rewire::serve
