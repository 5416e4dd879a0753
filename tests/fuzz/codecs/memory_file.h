// SPDX-License-Identifier: Apache-2.0
// A file in memory that the formats' libraries write and read.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "rewire/tests/fuzz/codecs/picture_seeds.h"

namespace rewire::test {

struct MemoryFile {
  Bytes bytes;
  std::size_t at = 0;

  std::size_t Write(const void* data, std::size_t size) {
    bytes.resize(std::max(bytes.size(), at + size));
    std::memcpy(bytes.data() + at, data, size);
    at += size;
    return size;
  }
  std::size_t Read(void* data, std::size_t size) {
    const std::size_t count = at < bytes.size() ? std::min(size, bytes.size() - at) : 0;
    std::memcpy(data, bytes.data() + at, count);
    at += count;
    return count;
  }
};

}  // namespace rewire::test
