// SPDX-License-Identifier: Apache-2.0
//
// Rows of a broadcast loop that are too short for a call each. Several of them are one row, if the elements
// of each operand follow each other, or if they are written out into a block.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rewire::kernel::cpu {

inline constexpr std::int64_t kJoinedElements = 256;  // of a block
inline constexpr std::int64_t kMostJoinedBytes = 8;   // of an element
inline constexpr std::int64_t kFewestJoinedRows = 4;

// Whether rows of `count` elements can be joined. Operand 0, which is written, has rows that follow each
// other. Each other one has such rows, too, or repeats one element along a row or one row for all.
bool CanJoinRows(int operands, std::int64_t count, const std::int64_t* steps, const std::int64_t* next,
                 const std::int64_t* bytes);

// Writes `rows` rows of `count` elements one behind the other to `block`. Elements of a row are `step` apart,
// and rows are `next` apart; one of the two is 0.
void RepeatRows(const std::byte* from, std::int64_t bytes, std::int64_t step, std::int64_t next,
                std::int64_t count, std::int64_t rows, std::byte* block);

}  // namespace rewire::kernel::cpu
