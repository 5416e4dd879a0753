// SPDX-License-Identifier: Apache-2.0
// The books of pinned memory that the CUDA library keeps.
#include "rewire/devices/cuda/pinned_blocks.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <deque>
#include <iterator>
#include <map>
#include <vector>

#include "rewire/tests/hostile/dice.h"

namespace rewire::cuda {
namespace {

// Callers that allocate and free as they are told, with addresses in place of memory.
class Caller {
 public:
  // Asks for a block. One that is not free is allocated later, when other threads may have asked, too.
  void Take(std::uint64_t bytes) {
    const PinnedBlocks::Place place = blocks_.Take(bytes);
    if (place.block != nullptr) {
      REQUIRE(place.excess.empty());
      Use(place.block, bytes);
      return;
    }
    awaited_.push_back(bytes);
    awaited_bytes_ += bytes;
    Free(place.excess);
  }
  // Allocates the block that was asked for first, or finds no memory for it.
  void Allocate(bool fails) {
    const std::uint64_t bytes = awaited_.front();
    awaited_.pop_front();
    awaited_bytes_ -= bytes;
    if (fails) return blocks_.Abandon(bytes);
    void* block = reinterpret_cast<void*>(next_ += 16);
    held_[block] = bytes;
    Use(block, bytes);
    most_ = std::max(most_, used_bytes_);
    REQUIRE(held() <= most_);  // before anything else is freed
    blocks_.Add(block, bytes);
  }
  void Give(std::size_t which) {
    const auto each = std::next(used_.begin(), static_cast<std::ptrdiff_t>(which % used_.size()));
    void* block = each->first;
    used_bytes_ -= each->second;
    used_.erase(each);
    Free(blocks_.Give(block));
  }
  void AddStream() {
    blocks_.AddStream();
    ++streams_;
  }
  void RemoveStream() {
    if (--streams_ == 0) most_ = used_bytes_;
    Free(blocks_.RemoveStream());
  }

  std::size_t used() const { return used_.size(); }
  std::size_t awaited() const { return awaited_.size(); }
  int streams() const { return streams_; }
  std::uint64_t most() const { return most_; }
  std::uint64_t held() const {
    std::uint64_t bytes = 0;
    for (const auto& [block, size] : held_) bytes += size;
    return bytes;
  }

 private:
  void Use(void* block, std::uint64_t bytes) {
    REQUIRE(held_.at(block) == bytes);
    REQUIRE(used_.emplace(block, bytes).second);
    used_bytes_ += bytes;
  }
  void Free(const std::vector<void*>& freed) {
    for (void* block : freed) {
      REQUIRE(used_.count(block) == 0);
      REQUIRE(held_.erase(block) == 1);
    }
    // Also with all that is being allocated, unless that is more than ever was in use.
    REQUIRE(held() + awaited_bytes_ <= std::max(most_, used_bytes_ + awaited_bytes_));
    if (streams_ == 0) REQUIRE(held() == used_bytes_);
  }

  PinnedBlocks blocks_;
  std::map<void*, std::uint64_t> held_, used_;
  std::deque<std::uint64_t> awaited_;
  std::uintptr_t next_ = 0;
  std::uint64_t used_bytes_ = 0, awaited_bytes_ = 0, most_ = 0;
  int streams_ = 0;
};

TEST_CASE("pinned blocks, used and free, are never more than was in use at one time") {
  hostile::Dice dice(1);
  for (int i = 0; i < 200; ++i) {
    Caller caller;
    std::uint64_t kept = 0;
    for (int step = 0; step < 300; ++step) {
      switch (dice.Below(10)) {
        case 0:
          if (caller.streams() < 3) caller.AddStream();
          break;
        case 1:
          if (caller.streams() > 0 && dice.OneIn(4)) caller.RemoveStream();
          break;
        case 2:
        case 3:
        case 4:
          caller.Take(100 * (1 + dice.Below(5)));
          break;
        case 5:
        case 6:
        case 7:
          if (caller.awaited() > 0) caller.Allocate(dice.OneIn(8));
          break;
        default:
          if (caller.used() > 0) caller.Give(dice.Below(1000));
      }
      kept = std::max(kept, caller.held());
    }
    CHECK(kept > 0);
  }
}

TEST_CASE("a free pinned block serves the next request of its size while there is a stream") {
  PinnedBlocks blocks;
  int memory[2];
  blocks.AddStream();
  CHECK(blocks.Take(64).block == nullptr);
  blocks.Add(&memory[0], 64);
  CHECK(blocks.Give(&memory[0]).empty());
  CHECK(blocks.Take(64).block == &memory[0]);
  CHECK(blocks.Give(&memory[0]).empty());
  // One of another size does not serve, and goes before the other is allocated.
  const PinnedBlocks::Place place = blocks.Take(32);
  CHECK(place.block == nullptr);
  CHECK(place.excess == std::vector<void*>{&memory[0]});
  blocks.Abandon(32);
  CHECK(blocks.Take(64).block == nullptr);
  blocks.Add(&memory[0], 64);
  CHECK(blocks.Give(&memory[0]).empty());
  CHECK(blocks.RemoveStream() == std::vector<void*>{&memory[0]});
  // Memory of somebody else's is the caller's to free.
  CHECK(blocks.Give(&memory[1]) == std::vector<void*>{&memory[1]});
}

}  // namespace
}  // namespace rewire::cuda
