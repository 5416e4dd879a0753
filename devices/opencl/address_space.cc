// SPDX-License-Identifier: Apache-2.0
#include "rewire/devices/opencl/address_space.h"

namespace rewire::opencl {

void* AddressSpace::Add(Buffer* buffer) {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::uint32_t number = used_;
  if (!free_.empty()) {
    number = free_.back();
    free_.pop_back();
  } else if (used_ == 1u << kNumberBits) {
    return nullptr;
  } else {
    ++used_;
  }
  std::atomic<Chunk*>& chunk = chunks_[number / kChunk];
  if (chunk.load(std::memory_order_relaxed) == nullptr) chunk.store(new Chunk{}, std::memory_order_release);
  buffer->number = number;
  buffer->serial = ++serial_;
  (*chunk.load(std::memory_order_relaxed))[number % kChunk].store(buffer, std::memory_order_release);
  return reinterpret_cast<void*>(std::uintptr_t{1} << 62 | std::uintptr_t{number} << kOffsetBits);
}

void AddressSpace::Remove(Buffer* buffer) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Chunk* chunk = chunks_[buffer->number / kChunk].load(std::memory_order_relaxed);
  (*chunk)[buffer->number % kChunk].store(nullptr, std::memory_order_release);
  free_.push_back(buffer->number);
}

}  // namespace rewire::opencl
