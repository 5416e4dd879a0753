// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/cpu/elementwise/join_rows.h"

#include <algorithm>
#include <cstring>

namespace rewire::kernel::cpu {
namespace {

template <typename T>
void RepeatElements(const std::byte* from, std::int64_t next, std::int64_t count, std::int64_t rows,
                    std::byte* block) {
  T* to = reinterpret_cast<T*>(block);
  for (std::int64_t r = 0; r < rows; ++r, to += count)
    std::fill_n(to, count, reinterpret_cast<const T*>(from)[r * next]);
}

}  // namespace

bool CanJoinRows(int operands, std::int64_t count, const std::int64_t* steps, const std::int64_t* next,
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

void RepeatRows(const std::byte* from, std::int64_t bytes, std::int64_t step, std::int64_t next,
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
