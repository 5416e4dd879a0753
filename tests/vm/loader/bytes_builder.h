// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace rewire::test {

// Puts the data together that compilers link into libraries.
class BytesBuilder {
 public:
  BytesBuilder& U64(std::uint64_t value) { return Little(value, 8); }
  BytesBuilder& U32(std::uint32_t value) { return Little(value, 4); }
  BytesBuilder& Text(const std::string& text) {
    U64(text.size());
    for (char c : text) bytes_.push_back(static_cast<std::byte>(c));
    return *this;
  }
  // All of it, with its size in front.
  std::vector<std::byte> Sized() const {
    BytesBuilder size;
    size.U64(bytes_.size());
    std::vector<std::byte> all = size.bytes_;
    all.insert(all.end(), bytes_.begin(), bytes_.end());
    return all;
  }

 private:
  BytesBuilder& Little(std::uint64_t value, int size) {
    for (int i = 0; i < size; ++i) bytes_.push_back(static_cast<std::byte>(value >> (8 * i)));
    return *this;
  }
  std::vector<std::byte> bytes_;
};

}  // namespace rewire::test
