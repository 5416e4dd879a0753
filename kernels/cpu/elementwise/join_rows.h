// SPDX-License-Identifier: Apache-2.0
//
// Rows of a broadcast loop that are too short for a call each. Several of them are one row, if the elements
// of each operand follow each other, or if they are written out into a block.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace rewire::kernel::cpu {

inline constexpr std::int64_t kJoinedElements = 256;  // of a block
inline constexpr std::int64_t kMostJoinedBytes = 8;   // of an element
inline constexpr std::int64_t kFewestJoinedRows = 4;

// Whether rows of `count` elements can be joined. Operand 0, which is written, has rows that follow each
// other. Each other one has such rows, too, or repeats one element along a row or one row for all.
inline bool CanJoinRows(int operands, std::int64_t count, const std::int64_t* steps, const std::int64_t* next,
                        const std::int64_t* bytes) {
  if (count > kJoinedElements / kFewestJoinedRows) return false;
  for (int k = 0; k < operands; ++k) {
    const bool follows = steps[k] == 1 && next[k] == count;
    const bool repeats = k != 0 && (steps[k] == 0 || (steps[k] == 1 && next[k] == 0));
    const bool is_size = bytes[k] == 1 || bytes[k] == 2 || bytes[k] == 4 || bytes[k] == kMostJoinedBytes;
    if (!is_size || !(follows || repeats)) return false;
  }
  return true;
}

template <typename T>
void RepeatElements(const std::byte* from, std::int64_t next, std::int64_t count, std::int64_t rows,
                    std::byte* block) {
  T* to = reinterpret_cast<T*>(block);
  for (std::int64_t r = 0; r < rows; ++r, to += count)
    std::fill_n(to, count, reinterpret_cast<const T*>(from)[r * next]);
}

// Writes `rows` rows of `count` elements one behind the other to `block`. Elements of a row are `step` apart,
// and rows are `next` apart; one of the two is 0.
inline void RepeatRows(const std::byte* from, std::int64_t bytes, std::int64_t step, std::int64_t next,
                       std::int64_t count, std::int64_t rows, std::byte* block) {
  if (step == 0) {
    if (bytes == 1) return RepeatElements<std::uint8_t>(from, next, count, rows, block);
    if (bytes == 2) return RepeatElements<std::uint16_t>(from, next, count, rows, block);
    if (bytes == 4) return RepeatElements<std::uint32_t>(from, next, count, rows, block);
    return RepeatElements<std::uint64_t>(from, next, count, rows, block);
  }
  const std::size_t row = static_cast<std::size_t>(count * bytes), all = row * static_cast<std::size_t>(rows);
  std::memcpy(block, from, row);
  for (std::size_t done = row; done < all;) {
    const std::size_t more = std::min(done, all - done);
    std::memcpy(block + done, block, more);
    done += more;
  }
}

}  // namespace rewire::kernel::cpu
