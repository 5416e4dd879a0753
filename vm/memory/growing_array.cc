// SPDX-License-Identifier: Apache-2.0
#include "rewire/vm/memory/growing_array.h"

namespace rewire {

bool GrowingMemory::Grow(std::uint64_t size, std::uint64_t element) {
  return size <= 0xFFFFFFFFu && Reallocate(CapacityFor(size, capacity_), element);
}

bool GrowingMemory::Reallocate(std::uint64_t capacity, std::uint64_t element) {
  void* const data = blocks_->Take(capacity * element);
  if (data == nullptr) return false;
  if (size_ > 0) std::memcpy(data, data_, size_ * element);
  if (data_ != nullptr) blocks_->Give(data_, capacity_ * element);
  data_ = data;
  capacity_ = capacity;
  if (capacity > kMinCapacity) blocks_->NoteLarge();
  return true;
}

void GrowingMemory::Shrink(std::uint64_t element) {
  const std::uint64_t peak = peak_;
  peak_ = size_;
  if (capacity_ <= kMinCapacity) return;
  blocks_->NoteLarge();
  if (peak * 4 > capacity_) return;
  std::uint64_t capacity = capacity_;
  while (capacity / 2 >= kMinCapacity && peak * 4 <= capacity) capacity /= 2;
  Reallocate(capacity, element);
}

void GrowingMemory::Release(std::uint64_t element) {
  if (data_ != nullptr) blocks_->Give(data_, capacity_ * element);
  data_ = nullptr;
  size_ = 0;
  capacity_ = 0;
}

}  // namespace rewire
