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
#include "rewire/base/likely.h"
#include "rewire/vm/memory/spare_blocks.h"

namespace rewire {

// GrowingArrays of all element types share the memory, and how it grows and shrinks.
class GrowingMemory {
 public:
  GrowingMemory& operator=(GrowingMemory&&) = delete;
  std::uint32_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  // Removes all elements; the memory stays.
  void Clear() { size_ = 0; }
  // Makes the array shorter.
  void Pop(std::uint32_t size) {
    REWIRE_ASSERT(size <= size_, "{} elements left of {}", size, size_);
    size_ = size;
  }

  // The new capacity of an array with room for `capacity` elements that is made `size` long.
  static constexpr std::uint64_t CapacityFor(std::uint64_t size, std::uint64_t capacity = 0) {
    if (capacity == 0) capacity = kMinCapacity;
    while (capacity < size) capacity *= 2;
    return capacity;
  }

 protected:
  static constexpr std::uint64_t kMinCapacity = 16;

  explicit GrowingMemory(SpareBlocks* blocks) : blocks_(blocks) {}
  GrowingMemory(GrowingMemory&& other) noexcept
      : blocks_(other.blocks_),
        data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)),
        peak_(std::exchange(other.peak_, 0)),
        capacity_(std::exchange(other.capacity_, 0)) {}

  [[gnu::cold]] bool Grow(std::uint64_t size, std::uint64_t element);
  [[gnu::cold]] bool Reallocate(std::uint64_t capacity, std::uint64_t element);
  void Shrink(std::uint64_t element);
  void Release(std::uint64_t element);

  SpareBlocks* blocks_;
  void* data_ = nullptr;
  std::uint32_t size_ = 0;
  std::uint32_t peak_ = 0;
  std::uint64_t capacity_ = 0;
};

template <typename T>
class GrowingArray : public GrowingMemory {
  static_assert(std::is_trivially_copyable_v<T>);
  static_assert(kMinCapacity * sizeof(T) >= sizeof(SpareBlocks::Block));

 public:
  explicit GrowingArray(SpareBlocks* blocks) : GrowingMemory(blocks) {}
  GrowingArray(GrowingArray&& other) noexcept = default;
  ~GrowingArray() { Release(); }

  T* data() { return static_cast<T*>(data_); }
  T& operator[](std::uint32_t i) {
    REWIRE_ASSERT(i < size_, "index {} of {} elements", i, size_);
    return data()[i];
  }
  T& back() { return (*this)[size_ - 1]; }

  // Makes the array `size` long. New elements are uninitialized. Returns false, and changes nothing, if there
  // is no memory.
  bool Resize(std::uint64_t size) {
    if (REWIRE_UNLIKELY(size > capacity_) && !Grow(size, sizeof(T))) return false;
    size_ = static_cast<std::uint32_t>(size);
    if (size_ > peak_) peak_ = size_;
    return true;
  }
  // Makes room for `more` elements. Returns false if there is no memory.
  bool Reserve(std::uint32_t more) {
    const std::uint32_t size = size_;
    const bool ok = Resize(std::uint64_t{size} + more);
    size_ = size;
    return ok;
  }
  bool HasRoom(std::uint32_t more) const { return std::uint64_t{size_} + more <= capacity_; }
  // Adds elements, for which there is room. They are uninitialized.
  T* Extend(std::uint32_t more) {
    REWIRE_ASSERT(HasRoom(more), "{} elements more than {}, room for {}", more, size_, capacity_);
    T* const first = data() + size_;
    size_ += more;
    if (size_ > peak_) peak_ = size_;
    return first;
  }
  // Adds an element, which is uninitialized. Returns null if there is no memory.
  T* Add() { return Resize(std::uint64_t{size_} + 1) ? data() + (size_ - 1) : nullptr; }
  bool Push(T value) {
    T* const added = Add();
    if (added != nullptr) *added = value;
    return added != nullptr;
  }

  // Called at the end of a call: halves the memory until it is less than four times the peak since the last
  // time.
  void Shrink() { GrowingMemory::Shrink(sizeof(T)); }
  void Release() { GrowingMemory::Release(sizeof(T)); }
};

}  // namespace rewire
