// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/image/prefix_code.h"

#include <algorithm>

namespace rewire::kernel::image {

std::uint16_t* CodeMemory::Take(std::size_t count) {
  constexpr std::size_t kPiece = std::size_t{1} << 15;
  if (count > left_) {
    left_ = std::max(count, kPiece);
    next_ = reinterpret_cast<std::uint16_t*>(
        canvas_.Scratch(static_cast<std::int64_t>(left_ * sizeof(std::uint16_t))));
    if (next_ == nullptr) return nullptr;
  }
  std::uint16_t* memory = next_;
  next_ += count;
  left_ -= count;
  return memory;
}

bool PrefixCode::Shape::Read(const std::uint8_t* lengths, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    if (lengths[i] == 0) continue;
    ++counts[lengths[i]];
    ++used;
    longest = std::max<int>(longest, lengths[i]);
  }
  std::uint32_t code = 0;
  for (std::size_t length = 1; length <= static_cast<std::size_t>(longest); ++length) {
    first[length] = code;
    code = (code + counts[length]) << 1;
  }
  // All codes of the longest length are taken, no more and no less. The only symbol takes no bits.
  return used == 1 || (used > 1 && code == 2U << longest);
}

void PrefixCode::Fill(const std::uint8_t* lengths, std::size_t count, Shape shape, std::uint16_t* table,
                      std::uint16_t* listed) {
  table_ = table;
  counts_ = listed;
  table_bits_ = shape.table_bits();
  const std::size_t entries = std::size_t{1} << table_bits_;
  std::fill_n(table, entries, static_cast<std::uint16_t>(kLongest << kSymbolBits));
  std::array<std::uint16_t, kLongest + 1> place{};
  if (listed != nullptr) {
    std::copy(shape.counts.begin(), shape.counts.end(), listed);
    for (std::size_t length = 1; length < kLongest; ++length)
      place[length + 1] = static_cast<std::uint16_t>(place[length] + shape.counts[length]);
  }
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t length = lengths[i];
    if (length == 0) continue;
    const std::uint32_t code = shape.first[length]++;
    if (listed != nullptr) listed[kLongest + 1 + place[length]++] = static_cast<std::uint16_t>(i);
    const std::size_t bits = shape.used == 1 ? 0 : length;
    if (bits > static_cast<std::size_t>(table_bits_)) continue;
    // The first bit of a code is the lowest one of the table's index.
    std::size_t turned = 0;
    for (std::size_t bit = 0; bit < bits; ++bit)
      turned |= static_cast<std::size_t>(code >> bit & 1U) << (bits - 1 - bit);
    for (std::size_t at = turned; at < entries; at += std::size_t{1} << bits)
      table[at] = static_cast<std::uint16_t>(i | bits << kSymbolBits);
  }
}

Outcome PrefixCode::Make(const std::uint8_t* lengths, std::size_t count, CodeMemory& memory) {
  Shape shape;
  if (!shape.Read(lengths, count)) return Outcome::kDamaged;
  std::uint16_t* table = memory.Take(std::size_t{1} << shape.table_bits());
  std::uint16_t* listed = shape.has_list() ? memory.Take(kLongest + 1 + shape.used) : nullptr;
  if (table == nullptr || (shape.has_list() && listed == nullptr)) return Outcome::kFailed;
  Fill(lengths, count, shape, table, listed);
  return Outcome::kDone;
}

bool PrefixCode::MakeIn(const std::uint8_t* lengths, std::size_t count, std::uint16_t* room) {
  Shape shape;
  if (!shape.Read(lengths, count)) return false;
  Fill(lengths, count, shape, room, nullptr);
  return true;
}

// Bit by bit: after each, the codes of that length are a range of numbers.
std::uint32_t PrefixCode::TakeLong(BitReader& bits) const {
  const std::uint32_t next = bits.Peek();
  std::uint32_t code = 0, first = 0, before = 0;
  for (int length = 1; length <= kLongest; ++length) {
    code = code << 1 | (next >> (length - 1) & 1U);
    const std::uint32_t count = counts_[length];
    if (code - first < count) {
      bits.Drop(length);
      return counts_[kLongest + 1 + before + code - first];
    }
    before += count;
    first = (first + count) << 1;
  }
  return 0;  // the code is complete, so it ends before
}

}  // namespace rewire::kernel::image
