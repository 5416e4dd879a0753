// SPDX-License-Identifier: Apache-2.0
//
// Products of rows by weights of 4 or 8 bits that have a scale for each block of a column. This is the
// innermost loop of the kernels of blocked_matmul.cc.
//
// A weight is (code - 8) * scale with 4 bits, and (code - 128) * scale with 8 bits, less an offset of its
// block if there are offsets. The codes lie in panels of kBlockedWidth columns. A panel has one 32-bit word
// for each column, then the next word of each column, and so on. With 8 bits a word has the codes of 4
// consecutive rows, the first one in the lowest byte. With 4 bits it has those of 8 rows: byte i has row i in
// its lower half and row i + 4 in its upper half. So a vector of words becomes two vectors of bytes without
// shuffles. The scales and offsets of a panel are [blocks, kBlockedWidth]. Columns behind the last one have
// scales of 0. The layout is the same on every CPU, so a compiler can write it into a file.
#pragma once

#include <cstdint>

namespace rewire::kernel::cpu {

inline constexpr std::int64_t kBlockedWidth = 16;
// A block is a multiple of this many rows, so it has whole words.
inline constexpr std::int64_t kBlockedRows = 8;
// The most rows of a block. Then sums of products of bytes do not overflow 32 bits.
inline constexpr std::int64_t kMostBlockedRows = 4096;

constexpr std::int64_t BlockedPanels(std::int64_t columns) {
  return (columns + kBlockedWidth - 1) / kBlockedWidth;
}
// The bytes of a panel.
constexpr std::int64_t BlockedBytes(std::int64_t depth, int bits) { return depth * kBlockedWidth * bits / 8; }
// The row of a word's rows that the code in bits [n * bits, (n + 1) * bits) belongs to.
constexpr int RowInWord(int n, int bits) { return bits == 4 ? n / 2 + 4 * (n % 2) : n; }

// One panel of weights [depth, kBlockedWidth].
struct BlockedPanel {
  const std::uint8_t* codes;
  const void* scales;    // of f32, or of f16 if half_scales
  const float* offsets;  // null: zeros
  std::int64_t depth, block;
  int bits;  // 4 or 8
  bool half_scales;
};

// A row of floats. `block_sums` are the sums of its elements in each block; they are read only if the panel
// has offsets.
struct BlockedRow {
  const float* x;
  const float* block_sums;
};

// A row, quantized: element k is bytes[k] * scales[k / block].
struct BlockedBytesRow {
  const std::int8_t* bytes;
  const float* scales;
  const std::int32_t* sums;  // of the bytes of each block
};

// The most rows that one call of multiply or multiply_bytes takes.
inline constexpr int kMostBlockedCount = 4;

struct BlockedKernels {
  // out[i * kBlockedWidth + j] = sum over k of x of row i [k] * w(k, j). A row gets the same sums whatever
  // others there are.
  void (*multiply)(const BlockedPanel& panel, const BlockedRow* rows, int count, float* out);
  // The same for quantized rows. Products in a block are summed up as
  // integers. Null if the CPU has no instruction for it.
  void (*multiply_bytes)(const BlockedPanel& panel, const BlockedBytesRow* rows, int count, float* out);
  // Writes the weights of rows [first, first + count) as floats: to[k * step + j]. `first` and `count` are
  // multiples of kBlockedRows.
  void (*expand)(const BlockedPanel& panel, std::int64_t first, std::int64_t count, float* to,
                 std::int64_t step);
  // Quantizes a row block by block: its elements rounded to 127ths of the block's largest one, as a
  // BlockedBytesRow has them. The scale is NaN if an element is not finite.
  void (*quantize)(const float* x, std::int64_t depth, std::int64_t block, std::int8_t* bytes, float* scales,
                   std::int32_t* sums);
  // From so many rows on, multiplying expanded weights takes less time than `multiply`.
  std::int64_t rows_to_expand;
};

// The kernels of the best instruction set that this CPU and the build support.
BlockedKernels ChooseBlockedKernels();

// The same, chosen once per process.
const BlockedKernels& BestBlockedKernels();

}  // namespace rewire::kernel::cpu
