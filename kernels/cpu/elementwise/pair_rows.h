// SPDX-License-Identifier: Apache-2.0
// Functions of two rows of floats (kernels/cpu/math/pair_math.h) as operations of Elementwise. Rows that are
// not contiguous floats go through blocks that are.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "rewire/kernels/cpu/elementwise/half_blocks.h"
#include "rewire/kernels/cpu/math/pair_math.h"

namespace rewire::kernel::cpu {

// The operation on elements of type T, float or Float16.
template <typename T>
struct OnPairs {
  PairMath::Row row;
};

// `count` elements of a row, from `at` on, as floats.
template <typename T>
void LoadFloats(RowOf<const T> row, std::int64_t at, std::int64_t count, float* block) {
  if constexpr (std::is_same_v<T, Float16>) {
    if (row.step == 0 || row.step == 1) return WidenRow(row, at, count, block);
  }
  for (std::int64_t i = 0; i < count; ++i) block[i] = static_cast<float>(row.data[(at + i) * row.step]);
}

template <typename T>
void StoreFloats(const float* block, std::int64_t at, std::int64_t count, RowOf<T> row) {
  if constexpr (std::is_same_v<T, Float16>) {
    if (row.step == 1) return BestHalfRows().narrow(block, row.data + at, count);
  }
  for (std::int64_t i = 0; i < count; ++i) row.data[(at + i) * row.step] = T(block[i]);
}

// The elements of a row as floats that lie beside each other: where they are, if they do, or in `block`. The
// block of a repeated element is written for the first time alone.
template <typename T>
const float* FloatsOf(RowOf<const T> row, std::int64_t at, std::int64_t count, float* block) {
  if constexpr (std::is_same_v<T, float>) {
    if (row.step == 1) return row.data + at;
  }
  if (at == 0 || row.step != 0) LoadFloats(row, at, count, block);
  return block;
}

template <typename T>
void RunRow(const OnPairs<T> op, std::int64_t count, RowOf<T> out, RowOf<const T> a, RowOf<const T> b) {
  float blocks[3][kHalfBlock];
  for (std::int64_t at = 0; at < count; at += kHalfBlock) {
    const std::int64_t size = std::min(count - at, kHalfBlock);
    const float* left = FloatsOf(a, at, size, blocks[0]);
    const float* right = FloatsOf(b, at, size, blocks[1]);
    if constexpr (std::is_same_v<T, float>) {
      if (out.step == 1) {
        op.row(left, right, out.data + at, size);
        continue;
      }
    }
    op.row(left, right, blocks[2], size);
    StoreFloats(blocks[2], at, size, out);
  }
}

template <typename T>
void RunContiguous(const OnPairs<T> op, std::int64_t count, T* out, const T* a, const T* b) {
  RunRow(op, count, RowOf<T>{out, 1}, RowOf<const T>{a, 1}, RowOf<const T>{b, 1});
}

}  // namespace rewire::kernel::cpu
