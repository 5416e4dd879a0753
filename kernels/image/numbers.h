// SPDX-License-Identifier: Apache-2.0
//
// Numbers: reads the numbers of a file one after the other. Behind the end they are 0, and failed() says so.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "rewire/kernels/image/canvas.h"

namespace rewire::kernel::image {

enum class ByteOrder { kBig, kLittle };

class Numbers {
 public:
  explicit Numbers(File file, std::size_t at = 0, ByteOrder order = ByteOrder::kBig)
      : file_(file), at_(std::min(at, file.size)), order_(order), failed_(at > file.size) {}

  std::size_t at() const { return at_; }
  std::size_t left() const { return file_.size - at_; }
  bool failed() const { return failed_; }

  // The next number of up to 8 bytes.
  std::uint64_t Take(int bytes) {
    std::uint64_t number = 0;
    for (int i = 0; i < bytes; ++i) {
      if (at_ == file_.size) failed_ = true;
      const std::uint64_t byte = at_ < file_.size ? file_.data[at_++] : 0U;
      number = order_ == ByteOrder::kBig ? number << 8 | byte : number | byte << (8 * i);
    }
    return number;
  }
  std::uint32_t Take32(int bytes) { return static_cast<std::uint32_t>(Take(bytes)); }
  // The next `bytes` bytes, or what is left of them.
  File Part(std::uint64_t bytes) {
    if (bytes > left()) failed_ = true;
    const File part{file_.data + at_, static_cast<std::size_t>(std::min<std::uint64_t>(bytes, left()))};
    at_ += part.size;
    return part;
  }
  void Skip(std::uint64_t bytes) { (void)Part(bytes); }

 private:
  File file_;
  std::size_t at_;
  ByteOrder order_;
  bool failed_;
};

}  // namespace rewire::kernel::image
