// SPDX-License-Identifier: Apache-2.0
// Reads little-endian values from untrusted bytes. The first read past the end makes the reader fail for good
// and every later read yield zero, so that a decoder checks once, after a group of reads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <type_traits>

#include "base/span.h"

namespace rewire {

class ByteReader {
 public:
  explicit ByteReader(Span<const std::byte> bytes) : bytes_(bytes) {}

  template <typename T>
  T Read() {
    static_assert(std::is_trivially_copyable_v<T>);
    T value{};
    if (Take(sizeof(T))) std::memcpy(&value, bytes_.data() + position_ - sizeof(T), sizeof(T));
    return value;
  }

  // A view into the bytes themselves: empty, and the reader failed, when fewer than `size` remain.
  Span<const std::byte> ReadBytes(std::uint64_t size) {
    if (!Take(size)) return {};
    return bytes_.subspan(position_ - static_cast<std::size_t>(size), static_cast<std::size_t>(size));
  }
  std::string_view ReadString(std::uint64_t size) {
    Span<const std::byte> bytes = ReadBytes(size);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  // An element count that the remaining bytes can hold at `element_size` bytes each; 0, and failed, when they
  // cannot.
  template <typename Count>
  std::size_t ReadCount(std::size_t element_size) {
    const std::uint64_t count = Read<Count>();
    if (count > remaining() / element_size) {
      failed_ = true;
      return 0;
    }
    return static_cast<std::size_t>(count);
  }

  bool ok() const { return !failed_; }
  std::size_t position() const { return position_; }
  std::size_t remaining() const { return failed_ ? 0 : bytes_.size() - position_; }

 private:
  bool Take(std::uint64_t size) {
    if (failed_ || size > bytes_.size() - position_) {
      failed_ = true;
      return false;
    }
    position_ += static_cast<std::size_t>(size);
    return true;
  }

  Span<const std::byte> bytes_;
  std::size_t position_ = 0;
  bool failed_ = false;
};

}  // namespace rewire
