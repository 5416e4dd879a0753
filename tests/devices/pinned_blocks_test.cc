// SPDX-License-Identifier: Apache-2.0
// The books of pinned memory that the CUDA library keeps.
#include "rewire/devices/cuda/pinned_blocks.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <iterator>
#include <map>
#include <vector>

#include "rewire/tests/hostile/dice.h"

namespace rewire::cuda {
namespace {

// A caller that allocates and frees as it is told, with addresses in place of memory.
class Caller {
 public:
  void Take(std::uint64_t bytes) {
    void* block = blocks_.Take(bytes);
    const bool is_new = block == nullptr;
    if (is_new) {
      block = reinterpret_cast<void*>(next_ += 16);
      held_[block] = bytes;
    }
    REQUIRE(held_.at(block) == bytes);
    REQUIRE(used_.emplace(block, bytes).second);
    used_bytes_ += bytes;
    most_ = std::max(most_, used_bytes_);
    if (is_new) Free(blocks_.Add(block, bytes));
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
  int streams() const { return streams_; }
  std::uint64_t most() const { return most_; }
  std::uint64_t held() const {
    std::uint64_t bytes = 0;
    for (const auto& [block, size] : held_) bytes += size;
    return bytes;
  }

 private:
  void Free(const std::vector<void*>& freed) {
    for (void* block : freed) {
      REQUIRE(used_.count(block) == 0);
      REQUIRE(held_.erase(block) == 1);
    }
    REQUIRE(held() <= most_);
    if (streams_ == 0) REQUIRE(held() == used_bytes_);
  }

  PinnedBlocks blocks_;
  std::map<void*, std::uint64_t> held_, used_;
  std::uintptr_t next_ = 0;
  std::uint64_t used_bytes_ = 0, most_ = 0;
  int streams_ = 0;
};

TEST_CASE("pinned blocks, used and free, are never more than was in use at one time") {
  hostile::Dice dice(1);
  for (int i = 0; i < 200; ++i) {
    Caller caller;
    std::uint64_t kept = 0;
    for (int step = 0; step < 300; ++step) {
      switch (dice.Below(8)) {
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
  CHECK(blocks.Add(&memory[0], 64).empty());
  CHECK(blocks.Give(&memory[0]).empty());
  CHECK(blocks.Take(32) == nullptr);
  CHECK(blocks.Take(64) == &memory[0]);
  CHECK(blocks.Give(&memory[0]).empty());
  CHECK(blocks.RemoveStream() == std::vector<void*>{&memory[0]});
  // Memory of somebody else's is the caller's to free.
  CHECK(blocks.Give(&memory[1]) == std::vector<void*>{&memory[1]});
}

}  // namespace
}  // namespace rewire::cuda
