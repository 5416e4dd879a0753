// SPDX-License-Identifier: Apache-2.0
//
// GrowingArray: a stack of trivially copyable elements in a VM's memory. Its memory counts against the byte
// limit, and growing can fail. It doubles when it is full; Shrink returns memory that the last calls did not
// need.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "rewire/base/assert.h"
#include "rewire/vm/memory/spare_blocks.h"

namespace rewire {

template <typename T>
class GrowingArray {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  explicit GrowingArray(SpareBlocks* blocks) : blocks_(blocks) {}
  GrowingArray(GrowingArray&& other) noexcept
      : blocks_(other.blocks_),
        data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)),
        capacity_(std::exchange(other.capacity_, 0)),
        peak_(std::exchange(other.peak_, 0)) {}
  GrowingArray& operator=(GrowingArray&&) = delete;
  ~GrowingArray() { Release(); }

  T* data() { return data_; }
  std::uint32_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T& operator[](std::uint32_t i) {
    REWIRE_ASSERT(i < size_, "index {} of {} elements", i, size_);
    return data_[i];
  }
  T& back() { return (*this)[size_ - 1]; }

  // The new capacity of an array with room for `capacity` elements that is made `size` long.
  static constexpr std::uint64_t CapacityFor(std::uint64_t size, std::uint64_t capacity = 0) {
    if (capacity == 0) capacity = kMinCapacity;
    while (capacity < size) capacity *= 2;
    return capacity;
  }

  // Makes the array `size` long. New elements are uninitialised. Returns false, and changes nothing, if there
  // is no memory.
  bool Resize(std::uint64_t size) {
    if (__builtin_expect(size > capacity_, 0) && !Grow(size)) return false;
    size_ = static_cast<std::uint32_t>(size);
    if (size_ > peak_) peak_ = size_;
    return true;
  }
  bool Push(T value) {
    if (!Resize(std::uint64_t{size_} + 1)) return false;
    data_[size_ - 1] = value;
    return true;
  }
  // Removes all elements; the memory stays.
  void Clear() { size_ = 0; }
  // Makes the array shorter.
  void Pop(std::uint32_t size) {
    REWIRE_ASSERT(size <= size_, "{} elements left of {}", size, size_);
    size_ = size;
  }

  // Called at the end of a call: halves the memory until it is less than four times the peak since the last
  // time.
  void Shrink() {
    const std::uint64_t peak = peak_;
    peak_ = size_;
    if (capacity_ <= kMinCapacity || peak * 4 > capacity_) return;
    std::uint64_t capacity = capacity_;
    while (capacity / 2 >= kMinCapacity && peak * 4 <= capacity) capacity /= 2;
    Reallocate(capacity);
  }
  void Release() {
    if (data_ != nullptr) blocks_->Give(data_, capacity_ * sizeof(T));
    data_ = nullptr;
    size_ = 0;
    capacity_ = 0;
  }

 private:
  static constexpr std::uint64_t kMinCapacity = 16;
  static_assert(kMinCapacity * sizeof(T) >= sizeof(SpareBlocks::Block));

  bool Grow(std::uint64_t size) {
    if (size > 0xFFFFFFFFu) return false;
    return Reallocate(CapacityFor(size, capacity_));
  }
  bool Reallocate(std::uint64_t capacity) {
    auto* data = static_cast<T*>(blocks_->Take(capacity * sizeof(T)));
    if (data == nullptr) return false;
    if (size_ > 0) std::memcpy(data, data_, size_ * sizeof(T));
    if (data_ != nullptr) blocks_->Give(data_, capacity_ * sizeof(T));
    data_ = data;
    capacity_ = capacity;
    return true;
  }

  SpareBlocks* blocks_;
  T* data_ = nullptr;
  std::uint32_t size_ = 0;
  std::uint64_t capacity_ = 0;
  std::uint32_t peak_ = 0;
};

}  // namespace rewire
