// SPDX-License-Identifier: Apache-2.0
// GrowingArray: a stack of trivially copyable elements in a VM's account, so that it counts against the byte
// limit and its growth can fail. Doubles when full; Shrink gives back what the last calls did not need.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "vm/memory/memory_account.h"

namespace rewire {

template <typename T>
class GrowingArray {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  explicit GrowingArray(MemoryAccount* account) : account_(account) {}
  GrowingArray(GrowingArray&& other) noexcept
      : account_(other.account_),
        data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)),
        capacity_(std::exchange(other.capacity_, 0)),
        peak_(std::exchange(other.peak_, 0)) {}
  GrowingArray& operator=(GrowingArray&&) = delete;
  ~GrowingArray() { Release(); }

  T* data() { return data_; }
  std::uint32_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T& operator[](std::uint32_t i) { return data_[i]; }
  T& back() { return data_[size_ - 1]; }

  // Of an array with room for `capacity` elements that is made `size` long.
  static constexpr std::uint64_t CapacityFor(std::uint64_t size, std::uint64_t capacity = 0) {
    if (capacity == 0) capacity = kMinCapacity;
    while (capacity < size) capacity *= 2;
    return capacity;
  }

  // Makes the array `size` long; new elements are uninitialised. False when there is no memory; nothing
  // changes then.
  bool Resize(std::uint64_t size) {
    if (__builtin_expect(size > capacity_, 0) && !Grow(size)) return false;
    size_ = static_cast<std::uint32_t>(size);
    if (size_ > peak_) peak_ = size_;
    return true;
  }
  bool Push(const T& value) {
    const T copy = value;
    if (!Resize(std::uint64_t{size_} + 1)) return false;
    data_[size_ - 1] = copy;
    return true;
  }
  void Pop(std::uint32_t size) { size_ = size; }

  // At the end of a call: halves the memory until it is less than four times the peak since the last time.
  void Shrink() {
    const std::uint64_t peak = peak_;
    peak_ = size_;
    if (capacity_ <= kMinCapacity || peak * 4 > capacity_) return;
    std::uint64_t capacity = capacity_;
    while (capacity / 2 >= kMinCapacity && peak * 4 <= capacity) capacity /= 2;
    Reallocate(capacity);
  }
  void Release() {
    if (data_ != nullptr) account_->Free(data_, capacity_ * sizeof(T), 64);
    data_ = nullptr;
    size_ = 0;
    capacity_ = 0;
  }

 private:
  static constexpr std::uint64_t kMinCapacity = 16;

  bool Grow(std::uint64_t size) {
    if (size > 0xFFFFFFFFu) return false;
    return Reallocate(CapacityFor(size, capacity_));
  }
  bool Reallocate(std::uint64_t capacity) {
    auto* data = static_cast<T*>(account_->Allocate(capacity * sizeof(T), 64));
    if (data == nullptr) return false;
    if (size_ > 0) std::memcpy(data, data_, size_ * sizeof(T));
    if (data_ != nullptr) account_->Free(data_, capacity_ * sizeof(T), 64);
    data_ = data;
    capacity_ = capacity;
    return true;
  }

  MemoryAccount* account_;
  T* data_ = nullptr;
  std::uint32_t size_ = 0;
  std::uint64_t capacity_ = 0;
  std::uint32_t peak_ = 0;
};

}  // namespace rewire
