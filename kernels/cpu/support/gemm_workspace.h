// SPDX-License-Identifier: Apache-2.0
//
// How much memory Gemm needs for packing.
#pragma once

#include <cstdint>

namespace rewire::kernel::cpu {

// True if a product of matrices is worth packing. If so, it is also true for more rows, columns or
// terms. For `tiny` multiplications, packing would cost more than it saves.
constexpr bool PacksMatrix(std::int64_t rows, std::int64_t columns, std::int64_t depth,
                           std::int64_t tiny = 4096) {
  std::int64_t work = 0;  // a file's shapes may overflow the product
  return rows >= 4 && (__builtin_mul_overflow(rows, columns, &work) ||
                       __builtin_mul_overflow(work, depth, &work) || work > tiny);
}
// The most elements that a product with this many columns and terms packs.
std::int64_t MostPacked(std::int64_t columns, std::int64_t depth);

}  // namespace rewire::kernel::cpu
