// SPDX-License-Identifier: Apache-2.0
//
// PrefixCode: a canonical prefix code as lossless WebP has it, in as little memory as its symbols need.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "rewire/kernels/image/canvas.h"

namespace rewire::kernel::image {

// Bits of a file, the lowest of each byte first. Behind the end they are 0, and failed() says so.
class BitReader {
 public:
  explicit BitReader(File file) : file_(file) {}

  // Up to 24 bits.
  std::uint32_t Take(int bits) {
    const std::uint32_t number = Peek() & ((1U << bits) - 1);
    Drop(bits);
    return number;
  }
  // The next 32 bits.
  std::uint32_t Peek() {
    while (count_ <= 56) {
      kept_ |= static_cast<std::uint64_t>(at_ < file_.size ? file_.data[at_] : 0U) << count_;
      ++at_;
      count_ += 8;
    }
    return static_cast<std::uint32_t>(kept_);
  }
  void Drop(int bits) {
    kept_ >>= bits;
    count_ -= bits;
  }
  bool failed() const {
    return at_ > file_.size && (at_ - file_.size) * 8 > static_cast<std::size_t>(count_);
  }

 private:
  File file_;
  std::size_t at_ = 0;
  std::uint64_t kept_ = 0;
  int count_ = 0;
};

// Memory for codes, taken from the canvas in pieces and charged by it.
class CodeMemory {
 public:
  explicit CodeMemory(Canvas& canvas) : canvas_(canvas) {}
  // Null if there is no more; the canvas says why.
  std::uint16_t* Take(std::size_t count);

 private:
  Canvas& canvas_;
  std::uint16_t* next_ = nullptr;
  std::size_t left_ = 0;
};

class PrefixCode {
 public:
  static constexpr int kLongest = 15, kTableBits = 8;
  static constexpr std::size_t kMostRoom = std::size_t{1} << kTableBits;

  // `lengths` has a length for each of `count` symbols; 0: it does not occur. kDamaged if they are those of
  // no code.
  Outcome Make(const std::uint8_t* lengths, std::size_t count, CodeMemory& memory);
  // The same in room for kMostRoom numbers, for lengths of at most kTableBits. False if they are those of no
  // code.
  bool MakeIn(const std::uint8_t* lengths, std::size_t count, std::uint16_t* room);

  std::uint32_t Take(BitReader& bits) const {
    const std::uint16_t entry = table_[bits.Peek() & ((1U << table_bits_) - 1)];
    const int length = entry >> kSymbolBits;
    if (length > table_bits_) [[unlikely]]
      return TakeLong(bits);
    bits.Drop(length);
    return entry & ((1U << kSymbolBits) - 1);
  }

 private:
  // Entries of the table have the symbol, of up to 2328, and its length, or one that is longer than the
  // table's.
  static constexpr int kSymbolBits = 12;

  // The statement of the lengths. False if they are those of no code.
  struct Shape {
    std::array<std::uint16_t, kLongest + 1> counts{};
    std::array<std::uint32_t, kLongest + 1> first{};  // code of each length
    std::size_t used = 0;                             // symbols
    int longest = 0;

    bool Read(const std::uint8_t* lengths, std::size_t count);
    int table_bits() const { return used == 1 ? 0 : longest < kTableBits ? longest : kTableBits; }
    bool has_list() const { return used > 1 && longest > kTableBits; }
  };
  void Fill(const std::uint8_t* lengths, std::size_t count, Shape shape, std::uint16_t* table,
            std::uint16_t* listed);
  std::uint32_t TakeLong(BitReader& bits) const;

  const std::uint16_t* table_ = nullptr;
  // How many codes have each length, and the symbols in the order of their codes. Only for longer codes.
  const std::uint16_t* counts_ = nullptr;
  int table_bits_ = 0;
};

}  // namespace rewire::kernel::image
