// SPDX-License-Identifier: Apache-2.0
// The two directions of sections.h: an ArchiveWriter appends what it is shown, an ArchiveReader fills it in
// from untrusted bytes. Private to the reader and the writer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "rewire/base/array.h"
#include "rewire/base/byte_reader.h"
#include "rewire/base/span.h"

namespace rewire {

class ArchiveWriter {
 public:
  static constexpr bool kReading = false;

  template <typename T>
  void Number(const T& value) {
    static_assert(std::is_arithmetic_v<T> || std::is_enum_v<T>);
    const auto* bytes = reinterpret_cast<const std::byte*>(&value);
    bytes_.insert(bytes_.end(), bytes, bytes + sizeof(T));
  }
  void Text(const std::string& text) {
    Count(text.size());
    const auto* bytes = reinterpret_cast<const std::byte*>(text.data());
    bytes_.insert(bytes_.end(), bytes, bytes + text.size());
  }
  // `smallest` is the smallest size of one element in the file, in bytes.
  template <typename T, typename Visit>
  void List(const Array<T>& list, std::size_t /*smallest*/, Visit&& visit) {
    Count(list.size());
    for (const T& element : list) visit(element);
  }
  // A list of numbers alone.
  template <typename T>
  void Numbers(const Array<T>& numbers) {
    Count(numbers.size());
    const auto* bytes = reinterpret_cast<const std::byte*>(numbers.data());
    bytes_.insert(bytes_.end(), bytes, bytes + numbers.size() * sizeof(T));
  }
  void Zeros(std::size_t count) { bytes_.insert(bytes_.end(), count, std::byte{0}); }

  // False if a string or list was too long for its 32-bit count.
  bool ok() const { return ok_; }
  std::vector<std::byte>& bytes() { return bytes_; }

 private:
  void Count(std::size_t count) {
    ok_ = ok_ && count <= std::numeric_limits<std::uint32_t>::max();
    Number(static_cast<std::uint32_t>(count));
  }

  std::vector<std::byte> bytes_;
  bool ok_ = true;
};

class ArchiveReader {
 public:
  static constexpr bool kReading = true;

  explicit ArchiveReader(Span<const std::byte> bytes) : reader_(bytes) {}

  template <typename T>
  void Number(T& value) {
    static_assert(std::is_arithmetic_v<T> || std::is_enum_v<T>);
    value = reader_.Read<T>();
  }
  void Text(std::string& text) { text = reader_.ReadString(reader_.Read<std::uint32_t>()); }
  template <typename T, typename Visit>
  void List(Array<T>& list, std::size_t smallest, Visit&& visit) {
    const std::size_t count = reader_.ReadCount<std::uint32_t>(smallest);
    list = Array<T>(count);  // at once: code that lets a vector grow is not small
    for (std::size_t i = 0; i < count && ok(); ++i) visit(list[i]);
  }
  template <typename T>
  void Numbers(Array<T>& numbers) {
    static_assert(std::is_arithmetic_v<T>);
    numbers = Array<T>(reader_.ReadCount<std::uint32_t>(sizeof(T)));
    CopyBytes(numbers.data(), numbers.size() * sizeof(T));
  }
  void CopyBytes(void* to, std::size_t size) {
    const Span<const std::byte> bytes = reader_.ReadBytes(size);
    if (!bytes.empty()) std::memcpy(to, bytes.data(), bytes.size());
  }
  void Zeros(std::size_t count) {
    for (std::byte byte : reader_.ReadBytes(count)) {
      if (byte != std::byte{0}) Reject("bytes that must be zero are not");
    }
  }
  // Reports that the bytes exist but are not valid. The first reason is kept.
  void Reject(const char* reason) {
    if (!ok()) return;
    reason_ = reason;
    rejected_at_ = reader_.position();
  }

  bool ok() const { return reader_.ok() && reason_ == nullptr; }
  // The reason why ok() is false. Static storage.
  const char* reason() const { return reason_ != nullptr ? reason_ : "it ends inside a record"; }
  // The position up to which the bytes were valid.
  std::size_t position() const { return reason_ != nullptr ? rejected_at_ : reader_.position(); }
  std::size_t remaining() const { return reader_.remaining(); }
  Span<const std::byte> ReadBytes(std::uint64_t size) { return reader_.ReadBytes(size); }

 private:
  ByteReader reader_;
  const char* reason_ = nullptr;
  std::size_t rejected_at_ = 0;
};

}  // namespace rewire
