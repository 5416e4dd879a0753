// SPDX-License-Identifier: Apache-2.0
// Public header: <rewire/base/byte_reader.h>.
//
// Reads little-endian values from untrusted bytes.
//
// The first read past the end puts the reader into a failed state, and every later read returns zero. So a
// decoder may read a group of values and check ok() once at the end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <type_traits>

#include "rewire/base/span.h"

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

  // Returns a view of the next `size` bytes. If fewer remain, the view is empty and the reader has failed.
  Span<const std::byte> ReadBytes(std::uint64_t size) {
    if (!Take(size)) return {};
    return bytes_.subspan(position_ - static_cast<std::size_t>(size), static_cast<std::size_t>(size));
  }
  std::string_view ReadString(std::uint64_t size) {
    Span<const std::byte> bytes = ReadBytes(size);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  // Reads an element count and checks that the remaining bytes can hold that many elements of `element_size`
  // bytes. Otherwise returns 0, and the reader has failed.
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
