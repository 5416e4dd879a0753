// SPDX-License-Identifier: Apache-2.0
// Where blocks of memory lie in one piece when it is known from when to when each is needed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace rewire::compiler {

// What offsets are multiples of: a cache line, and the widest vector.
inline constexpr std::uint64_t kArenaAlignment = 64;

struct ArenaBlock {
  std::uint64_t bytes = 0;
  std::size_t begin = 0, end = 0;  // the places at which it is needed, both included
  std::uint64_t offset = 0;        // LayOut sets it
};

// Gives each block an offset such that no two lie over each other that are needed at one place. Returns the
// bytes of the piece.
std::uint64_t LayOut(std::vector<ArenaBlock>* blocks);

// What the VM's pool takes for the same blocks, allocated one by one and reused by size class.
std::uint64_t PooledBytes(const std::vector<ArenaBlock>& blocks);

}  // namespace rewire::compiler
