// SPDX-License-Identifier: Apache-2.0
//
// Places blocks of memory in one piece, when it is known from when to when each block is needed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace rewire::compiler {

// Offsets are multiples of this: a cache line, and the widest vector.
inline constexpr std::uint64_t kArenaAlignment = 64;

struct ArenaBlock {
  std::uint64_t bytes = 0;
  std::size_t begin = 0, end = 0;  // the places in the program between which it is needed, both inclusive
  std::uint64_t offset = 0;        // LayOut sets it
};

// Gives each block an offset, such that blocks that are needed at the same place do not overlap. Returns the
// size of the piece in bytes.
std::uint64_t LayOut(std::vector<ArenaBlock>* blocks);

// What the VM's pool would take for the same blocks, allocated one by one and reused by size class.
std::uint64_t PooledBytes(const std::vector<ArenaBlock>& blocks);

}  // namespace rewire::compiler
