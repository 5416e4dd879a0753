// SPDX-License-Identifier: Apache-2.0
//
// Places blocks of memory in one piece, when it is known from when to when each block is needed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace rewire::compiler {

// Offsets on the host are multiples of this: a cache line, and the widest vector.
inline constexpr std::uint64_t kArenaAlignment = 64;
// The alignment of blocks on a device. A tensor is an argument of kernels, and OpenCL wants part of a buffer
// to begin at a multiple of the device's own alignment: 128 to 512 bytes.
inline constexpr std::uint64_t kDeviceArenaAlignment = 512;
inline constexpr std::uint64_t ArenaAlignment(bool device) {
  return device ? kDeviceArenaAlignment : kArenaAlignment;
}

struct ArenaBlock {
  std::uint64_t bytes = 0;
  std::size_t begin = 0, end = 0;  // the places in the program between which it is needed, both inclusive
  std::uint64_t offset = 0;        // LayOut sets it
};

// Gives each block an offset, such that blocks that are needed at the same place do not overlap. Returns the
// size of the piece in bytes.
std::uint64_t LayOut(std::vector<ArenaBlock>* blocks, std::uint64_t alignment = kArenaAlignment);

// The bytes that the VM's pool would take for the same blocks, allocated one by one and reused by size class.
// On a device only the memory there counts.
std::uint64_t PooledBytes(const std::vector<ArenaBlock>& blocks, bool device = false);

}  // namespace rewire::compiler
