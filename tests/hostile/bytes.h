// SPDX-License-Identifier: Apache-2.0
// Little-endian numbers and texts in a byte string, after the first lines of docs/format.md. This folder's
// reader and writer of containers share no code with the library's, so that neither can hide a fault of the
// other.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace rewire::hostile {

using Bytes = std::string;

class ByteWriter {
 public:
  template <typename T>
  void Number(T value) {
    static_assert(std::is_arithmetic_v<T>);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(T));
  }
  void Text(std::string_view text) {
    Number(static_cast<std::uint32_t>(text.size()));
    bytes_ += text;
  }
  void Zeros(std::size_t count) { bytes_.append(count, '\0'); }
  void Raw(std::string_view bytes) { bytes_ += bytes; }
  // Zeros up to the next multiple.
  void Align(std::size_t alignment) { Zeros((alignment - bytes_.size() % alignment) % alignment); }
  // A u32 count, then each item.
  template <typename T, typename F>
  void List(const std::vector<T>& items, F&& item) {
    Number(static_cast<std::uint32_t>(items.size()));
    for (const T& one : items) item(one);
  }

  std::size_t size() const { return bytes_.size(); }
  const Bytes& bytes() const { return bytes_; }

 private:
  Bytes bytes_;
};

// Once something did not fit, ok() is false and all that is read is zero.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : bytes_(bytes) {}

  template <typename T>
  T Number() {
    static_assert(std::is_arithmetic_v<T>);
    T value{};
    if (Has(sizeof(T))) {
      std::memcpy(&value, bytes_.data() + at_, sizeof(T));
      at_ += sizeof(T);
    }
    return value;
  }
  std::string Raw(std::size_t size) {
    if (!Has(size)) return {};
    at_ += size;
    return std::string(bytes_.substr(at_ - size, size));
  }
  std::string Text() { return Raw(Number<std::uint32_t>()); }
  void Zeros(std::size_t count) {
    for (const char byte : Raw(count)) {
      if (byte != 0) ok_ = false;
    }
  }
  template <typename T, typename F>
  void List(std::vector<T>& items, F&& item) {
    const auto count = Number<std::uint32_t>();
    // Every item has a byte at least.
    if (count > bytes_.size() - at_) ok_ = false;
    for (std::uint32_t i = 0; ok_ && i < count; ++i) item(items.emplace_back());
  }

  void Fail() { ok_ = false; }
  bool ok() const { return ok_; }
  bool at_end() const { return at_ == bytes_.size(); }

 private:
  bool Has(std::size_t size) {
    if (size > bytes_.size() - at_) ok_ = false;
    return ok_;
  }

  std::string_view bytes_;
  std::size_t at_ = 0;
  bool ok_ = true;
};

}  // namespace rewire::hostile
