// SPDX-License-Identifier: Apache-2.0
//
// AddressSpace: addresses for OpenCL's buffers, which are handles.
//
// An address names a buffer and a byte in it: bits 62 and 63 are 01, 24 bits number the buffer, 38 bits are
// the offset. No pointer of the host looks like that, and reading through one is a fault. Buffers may have
// 256 GiB. Finding a buffer takes two reads and no lock.
//
// Any thread may call any function. An address is used only while its buffer lives, as device_api.h demands.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "rewire/devices/opencl/driver.h"

namespace rewire::opencl {

// A buffer of the driver's, and the parts of it that kernels have been given.
struct Buffer {
  cl_mem memory = nullptr;
  std::uint64_t bytes = 0;
  std::uint32_t number = 0;
  std::uint64_t serial = 0;  // of this buffer alone, from 1; numbers are given again
  std::uint32_t users = 1;   // an imported buffer may have several

  std::mutex mutex;                                                 // of `parts`
  std::map<std::pair<std::uint64_t, std::uint64_t>, cl_mem> parts;  // by offset and size
};

class AddressSpace {
 public:
  static constexpr int kOffsetBits = 38;
  static constexpr int kNumberBits = 24;
  static constexpr std::uint64_t kLargest = std::uint64_t{1} << kOffsetBits;

  static bool IsAddress(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer) >> 62 == 1; }
  static std::uint64_t OffsetOf(const void* address) {
    return reinterpret_cast<std::uintptr_t>(address) & (kLargest - 1);
  }

  // Takes the buffer over and gives its address. Null if there are too many buffers.
  void* Add(Buffer* buffer);
  // The buffer of an address; null if there is none.
  Buffer* Find(const void* address) const {
    if (!IsAddress(address)) return nullptr;
    const auto value = reinterpret_cast<std::uintptr_t>(address);
    const auto number = static_cast<std::uint32_t>(value >> kOffsetBits) & ((1u << kNumberBits) - 1);
    const Chunk* chunk = chunks_[number / kChunk].load(std::memory_order_acquire);
    return chunk == nullptr ? nullptr : (*chunk)[number % kChunk].load(std::memory_order_acquire);
  }
  // Forgets the buffer; the caller deletes it.
  void Remove(Buffer* buffer);

 private:
  static constexpr std::uint32_t kChunk = 4096;
  static constexpr std::uint32_t kChunks = (1u << kNumberBits) / kChunk;
  using Chunk = std::array<std::atomic<Buffer*>, kChunk>;

  std::array<std::atomic<Chunk*>, kChunks> chunks_{};
  std::mutex mutex_;  // of what follows
  std::vector<std::uint32_t> free_;
  std::uint32_t used_ = 0;  // numbers that were ever given
  std::uint64_t serial_ = 0;
};

}  // namespace rewire::opencl
