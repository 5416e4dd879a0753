// SPDX-License-Identifier: Apache-2.0
//
// FixedBlock: an allocator inside one block of memory. It never needs more room than the sum of the blocks
// that are held.
//
// Small blocks (up to 1 KiB, multiples of 64 bytes) are placed at the top of the highest hole that fits.
// Larger ones (multiples of 128 bytes, with that alignment) are placed at the bottom of the lowest hole that
// fits. Adjacent holes are merged. So if blocks are taken without freeing any in between, no byte is wasted,
// whatever the order: they fit if the sum of Rounded(bytes) is at most the room. Thread-safe.
#pragma once

#include <cstdint>
#include <mutex>

#include "rewire/base/export.h"
#include "rewire/vm/allocator.h"

namespace rewire {

class FixedBlock {
 public:
  // Alignment of the memory that a FixedBlock is put into. If the memory is less aligned, the bytes before
  // the first boundary are not used.
  static constexpr std::uint64_t kAlignment = 128;

  // Puts a FixedBlock at the start of the memory, which must outlive it. Returns null if the memory is too
  // small. Nothing needs to be destroyed.
  static FixedBlock* Make(void* memory, std::uint64_t bytes);

  // The part of the memory that the FixedBlock itself takes.
  REWIRE_API static std::uint64_t OwnBytes();
  // The room that a block of this size takes.
  static constexpr std::uint64_t Rounded(std::uint64_t bytes) {
    const std::uint64_t unit = bytes <= kMostSmall ? kUnit : kAlignment;
    return (bytes + unit - 1) / unit * unit;
  }

  // An allocator that refers to this object. It supports alignments up to the unit of a block.
  Allocator allocator();
  // Total bytes for blocks.
  std::uint64_t room() const { return room_; }
  // Bytes of this object and its blocks, from its own address on.
  std::uint64_t bytes() const { return OwnBytes() + room_; }
  bool refused() const { return refused_; }  // true if a request was refused since ClearRefused
  void ClearRefused() { refused_ = false; }

 private:
  // A hole. It is stored in the free memory that it describes. Holes are sorted by address.
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
