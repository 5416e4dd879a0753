// SPDX-License-Identifier: Apache-2.0
// How much memory Gemm packs into.
#pragma once

#include <cstdint>

namespace rewire::kernel::cpu {

// Whether a product of matrices of floats is worth packing for; more rows, columns or terms are too.
constexpr bool PacksMatrix(std::int64_t rows, std::int64_t columns, std::int64_t depth) {
  constexpr std::int64_t kTiny = 4096;  // multiplications that cost less than preparing for them
  std::int64_t work = 0;                // those of a file's shapes may overflow
  return rows >= 4 && (__builtin_mul_overflow(rows, columns, &work) ||
                       __builtin_mul_overflow(work, depth, &work) || work > kTiny);
}
// The most elements that a product with so many columns and terms packs, and the most of any.
std::int64_t MostPacked(std::int64_t columns, std::int64_t depth);
inline constexpr std::int64_t kGemmMost = std::int64_t{1} << 40;

}  // namespace rewire::kernel::cpu
