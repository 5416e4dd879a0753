// SPDX-License-Identifier: Apache-2.0
// FixedBlock: an allocator inside one block of memory, whose needs are the sum of what is held.
//
// Small blocks (up to 1 KiB, multiples of 64 bytes) are placed from the top of the highest hole that fits,
// larger ones (multiples of 128 bytes, aligned to as much) from the bottom of the lowest, and holes that
// touch become one. So taking blocks without returning any in between never wastes a byte, in any order:
// they fit when the sum of Rounded(bytes) is at most the room. Any thread.
#pragma once

#include <cstdint>
#include <mutex>

#include "base/export.h"
#include "vm/allocator.h"

namespace rewire {

class FixedBlock {
 public:
  // Of the block that a FixedBlock is put into; memory that is less aligned loses what lies before the
  // boundary.
  static constexpr std::uint64_t kAlignment = 128;

  // Puts one at the start of the memory, which must outlive it; null when that is too small. Nothing needs to
  // be destroyed.
  static FixedBlock* Make(void* memory, std::uint64_t bytes);

  // What the FixedBlock itself takes of the memory.
  REWIRE_API static std::uint64_t OwnBytes();
  // What a block of so many bytes takes.
  static constexpr std::uint64_t Rounded(std::uint64_t bytes) {
    const std::uint64_t unit = bytes <= kMostSmall ? kUnit : kAlignment;
    return (bytes + unit - 1) / unit * unit;
  }

  // Refers to this. A block can be aligned to its unit at most.
  Allocator allocator();
  // All bytes that blocks can have.
  std::uint64_t room() const { return room_; }
  // This and its blocks, from its own address on.
  std::uint64_t bytes() const { return OwnBytes() + room_; }
  bool refused() const { return refused_; }  // a request, since ClearRefused
  void ClearRefused() { refused_ = false; }

 private:
  // Lies in the free memory that it describes; sorted by address.
  struct Hole {
    std::uint64_t bytes;
    Hole* next;
    char* begin() { return reinterpret_cast<char*>(this); }
    char* end() { return begin() + bytes; }
  };
  static constexpr std::uint64_t kUnit = 64;
  static constexpr std::uint64_t kMostSmall = 1024;

  FixedBlock(char* begin, std::uint64_t bytes);
  void* Take(std::uint64_t bytes, std::uint64_t alignment);
  void* TakeFromTop(std::uint64_t bytes);
  void* TakeFromBottom(std::uint64_t bytes);
  void Give(void* block, std::uint64_t bytes);

  std::mutex mutex_;
  Hole* holes_ = nullptr;
  std::uint64_t room_ = 0;
  bool refused_ = false;
};

}  // namespace rewire
