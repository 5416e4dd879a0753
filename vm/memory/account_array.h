// SPDX-License-Identifier: Apache-2.0
//
// AccountArray: an array whose length is set once. Its memory belongs to a VM's account, so it counts against
// the byte limit, and making it can fail.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "rewire/base/assert.h"
#include "rewire/vm/memory/memory_account.h"

namespace rewire {

template <typename T>
class AccountArray {
 public:
  AccountArray() = default;
  AccountArray(AccountArray&& other) noexcept { Swap(other); }
  AccountArray& operator=(AccountArray&& other) noexcept {
    Swap(other);
    return *this;
  }
  ~AccountArray() {
    if (data_ == nullptr) return;
    std::destroy_n(data_, size_);
    account_->Free(data_, Bytes(size_), 64);
  }

  // Makes `size` value-initialized elements. The array must be empty. Returns false, and changes nothing, if
  // there is no memory.
  bool Make(MemoryAccount* account, std::uint32_t size) {
    REWIRE_ASSERT(data_ == nullptr, "an array of {} elements is made again", size_);
    if (size == 0) return true;
    data_ = static_cast<T*>(account->Allocate(Bytes(size), 64));
    if (data_ == nullptr) return false;
    account_ = account;
    size_ = size;
    std::uninitialized_value_construct_n(data_, size);
    return true;
  }
  static constexpr std::uint64_t Bytes(std::uint32_t size) {
    return (std::uint64_t{size} * sizeof(T) + 63) / 64 * 64;
  }

  std::uint32_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* data() { return data_; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  T& operator[](std::uint32_t i) {
    REWIRE_ASSERT(i < size_, "index {} of {} elements", i, size_);
    return data_[i];
  }
  const T& operator[](std::uint32_t i) const {
    REWIRE_ASSERT(i < size_, "index {} of {} elements", i, size_);
    return data_[i];
  }

 private:
  void Swap(AccountArray& other) {
    std::swap(account_, other.account_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
  }

  MemoryAccount* account_ = nullptr;
  T* data_ = nullptr;
  std::uint32_t size_ = 0;
};

}  // namespace rewire
