// SPDX-License-Identifier: Apache-2.0
// Compiled once for each instruction set; see Highway's foreach_target.h.
#include "rewire/kernels/cpu/movement/transposed_block.h"

#include <algorithm>
#include <cstring>
#include <utility>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "rewire/kernels/cpu/movement/transposed_block.cc"
#include <hwy/foreach_target.h>
// Behind it.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace rewire::kernel::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

namespace {

// A vector of at most a line of the cache. Where the size shows only at run time it is the least one.
inline constexpr std::size_t kLeastBytes = 16, kLineBytes = 64;
inline constexpr std::size_t kVectorBytes =
    HWY_HAVE_SCALABLE
        ? kLeastBytes
        : std::clamp<std::size_t>(hn::MaxLanes(hn::ScalableTag<std::uint8_t>()), kLeastBytes, kLineBytes);

// Squares whose columns fill a vector of kBytes are transposed in registers.
template <typename T, std::size_t kBytes>
class Square {
 public:
  static constexpr std::int64_t kSide = kBytes / sizeof(T);

  // Each of log2(kSide) rounds interleaves every column with the one half a square further on. After all of
  // them the columns have become rows.
  template <bool past_caches>
  static void Transpose(T* out, std::int64_t out_row, const T* in, std::int64_t in_column) {
    Vector lines[kSide];
#pragma GCC unroll 16
    for (std::int64_t c = 0; c < kSide; ++c) std::memcpy(&lines[c], in + c * in_column, sizeof(Vector));
#pragma GCC unroll 4
    for (std::int64_t round = 1; round < kSide; round *= 2) {
      Vector next[kSide];
#pragma GCC unroll 8
      for (std::int64_t i = 0; i < kSide / 2; ++i) {
        next[2 * i] = Interleave<0>(lines[i], lines[i + kSide / 2], Lanes());
        next[2 * i + 1] = Interleave<kSide / 2>(lines[i], lines[i + kSide / 2], Lanes());
      }
#pragma GCC unroll 16
      for (std::int64_t i = 0; i < kSide; ++i) lines[i] = next[i];
    }
#pragma GCC unroll 16
    for (std::int64_t r = 0; r < kSide; ++r) {
      if constexpr (past_caches) {
        const hn::ScalableTag<std::uint8_t> bytes;
        hn::Stream(hn::LoadU(bytes, reinterpret_cast<const std::uint8_t*>(&lines[r])), bytes,
                   reinterpret_cast<std::uint8_t*>(out + r * out_row));
      } else {
        std::memcpy(out + r * out_row, &lines[r], sizeof(Vector));
      }
    }
  }

 private:
  typedef T Vector __attribute__((vector_size(kBytes)));
  using Lanes = std::make_integer_sequence<int, kSide>;

  // a[first], b[first], a[first + 1], b[first + 1] and so on.
  template <int first, int... i>
  static HWY_INLINE Vector Interleave(Vector a, Vector b, std::integer_sequence<int, i...>) {
    return __builtin_shufflevector(a, b, (first + i / 2 + i % 2 * static_cast<int>(kSide))...);
  }
};

// The number of columns is known to the compiler, so that it unrolls the loop over them.
template <int columns, typename T>
void CopyFewColumns(T* out, std::int64_t out_row, const T* in, std::int64_t in_column, std::int64_t rows) {
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < columns; ++c) out[r * out_row + c] = in[r + c * in_column];
  }
}

// One element after the other.
template <typename T>
void CopyElements(T* out, std::int64_t out_row, const T* in, std::int64_t in_column, std::int64_t rows,
                  std::int64_t columns) {
  switch (columns) {
    case 1:
      return CopyFewColumns<1>(out, out_row, in, in_column, rows);
    case 2:
      return CopyFewColumns<2>(out, out_row, in, in_column, rows);
    case 3:
      return CopyFewColumns<3>(out, out_row, in, in_column, rows);
    case 4:
      return CopyFewColumns<4>(out, out_row, in, in_column, rows);
    default:
      for (std::int64_t r = 0; r < rows; ++r) {
        for (std::int64_t c = 0; c < columns; ++c) out[r * out_row + c] = in[r + c * in_column];
      }
  }
}

// Squares as far as they fit, below and beside them smaller ones, and the rest in elements. Squares below
// each other come first, since their columns continue: so few pages and lines are in use at a time.
template <typename T, std::size_t kBytes, bool past_caches = false>
void CopySquares(T* out, std::int64_t out_row, const T* in, std::int64_t in_column, std::int64_t rows,
                 std::int64_t columns) {
  if (rows <= 0 || columns <= 0) return;
  if constexpr (kBytes < kLeastBytes || sizeof(T) > 8) {
    CopyElements(out, out_row, in, in_column, rows, columns);
  } else {
    constexpr std::int64_t kSide = Square<T, kBytes>::kSide;
    const std::int64_t square_rows = columns < kSide ? 0 : rows / kSide * kSide;
    const std::int64_t square_columns = rows < kSide ? 0 : columns / kSide * kSide;
    for (std::int64_t c = 0; c < square_columns; c += kSide) {
      for (std::int64_t r = 0; r < square_rows; r += kSide) {
        Square<T, kBytes>::template Transpose<past_caches>(out + r * out_row + c, out_row,
                                                           in + r + c * in_column, in_column);
      }
    }
    CopySquares<T, kBytes / 2>(out + square_rows * out_row, out_row, in + square_rows, in_column,
                               rows - square_rows, square_columns);
    CopySquares<T, kBytes / 2>(out + square_columns, out_row, in + square_columns * in_column, in_column,
                               rows, columns - square_columns);
  }
}

// Elements of one and two bytes are interleaved in the least vectors alone: across wider ones that is slow.
template <typename T>
void CopyBlock(T* out, std::int64_t out_row, const T* in, std::int64_t in_column, std::int64_t rows,
               std::int64_t columns, [[maybe_unused]] bool past_caches) {
  constexpr std::size_t kBytes = sizeof(T) < 4 ? kLeastBytes : kVectorBytes;
  if constexpr (kBytes == kLineBytes) {
    const bool whole_lines = reinterpret_cast<std::uintptr_t>(out) % kLineBytes == 0 &&
                             static_cast<std::size_t>(out_row) * sizeof(T) % kLineBytes == 0;
    if (past_caches && whole_lines)
      return CopySquares<T, kBytes, true>(out, out_row, in, in_column, rows, columns);
  }
  CopySquares<T, kBytes>(out, out_row, in, in_column, rows, columns);
}

}  // namespace

BlockTransposes TransposesOfTarget() {
  return {&CopyBlock<std::uint8_t>, &CopyBlock<std::uint16_t>, &CopyBlock<std::uint32_t>,
          &CopyBlock<std::uint64_t>, &CopyBlock<Bytes16>};
}

}  // namespace rewire::kernel::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rewire::kernel::cpu {

HWY_EXPORT(TransposesOfTarget);

BlockTransposes ChooseBlockTransposes() { return HWY_DYNAMIC_DISPATCH(TransposesOfTarget)(); }

const BlockTransposes& BestBlockTransposes() {
  static const BlockTransposes kBest = ChooseBlockTransposes();
  return kBest;
}

}  // namespace rewire::kernel::cpu
#endif
