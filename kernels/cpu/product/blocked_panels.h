// SPDX-License-Identifier: Apache-2.0
//
// Products of rows by weights of 4 or 8 bits that have a scale for each block of a column. This is the
// innermost loop of the kernels of blocked_matmul.cc.
//
// A weight is (code - 8) * scale with 4 bits, and (code - 128) * scale with 8 bits, less an offset of its
// block if there are offsets. It is computed as code * scale less a term of the block, and rounded once. The
// term is 8 or 128 times the scale, and must not overflow. The codes lie in panels of kBlockedWidth columns.
// A panel has one 32-bit word for each column, then the next word of each column, and so on. With 8 bits a
// word has the codes of 4 consecutive rows, the first one in the lowest byte. With 4 bits it has those of 8
// rows: byte i has row i in its lower half and row i + 4 in its upper half. So a vector of words becomes two
// vectors of bytes without shuffles. The scales and offsets of a panel are [blocks, kBlockedWidth]. Columns
// behind the last one have scales of 0. The layout is the same on every CPU, so a compiler can write it into
// a file.
#pragma once

#include <cstdint>

namespace rewire::kernel::cpu {

inline constexpr std::int64_t kBlockedWidth = 16;
// A block is a multiple of this many rows, so it has whole words.
inline constexpr std::int64_t kBlockedRows = 8;
// So many rows of weights are multiplied before their sums are added to those of the rows before. What
// weights expand to for one panel of floats then takes half of a usual first cache.
inline constexpr std::int64_t kBlockedSegment = 128;
static_assert(kBlockedSegment % kBlockedRows == 0);
// The most rows of a block. Then sums of products of bytes do not overflow 32 bits.
inline constexpr std::int64_t kMostBlockedRows = 4096;

constexpr std::int64_t BlockedPanels(std::int64_t columns) {
  return (columns + kBlockedWidth - 1) / kBlockedWidth;
}
// The bytes of a panel.
constexpr std::int64_t BlockedBytes(std::int64_t depth, int bits) { return depth * kBlockedWidth * bits / 8; }
// The row of a word's rows that the code in bits [n * bits, (n + 1) * bits) belongs to.
constexpr int RowInWord(int n, int bits) { return bits == 4 ? n / 2 + 4 * (n % 2) : n; }

// One panel of weights [depth, kBlockedWidth]. Further ones follow it in memory.
struct BlockedPanel {
  const std::uint8_t* codes;
  const void* scales;    // of f32, or of f16 if half_scales
  const float* offsets;  // null: zeros
  std::int64_t depth, block;
  int bits;  // 4 or 8
  bool half_scales;

  std::int64_t blocks() const { return depth / block; }
  // The panel so many panels further on.
  BlockedPanel Next(std::int64_t panels) const {
    BlockedPanel next = *this;
    next.codes += panels * BlockedBytes(depth, bits);
    const std::int64_t terms = panels * blocks() * kBlockedWidth;
    next.scales = static_cast<const char*>(scales) + terms * (half_scales ? 2 : 4);
    if (offsets != nullptr) next.offsets += terms;
    return next;
  }
};

// The sums of rows by `panels` panels, width = panels * kBlockedWidth. Row i of `out` begins with the bias.
// The products of the first segment are added in the order of the weights' rows, and then row i of the
// addend. Each further segment has a sum of its own, which is added to that.
// A PanelTile of kRowsInOneOrder rows and more adds in this order, too
// (panels/panels.h).
struct BlockedSums {
  int panels;
  const float* bias;    // [width]; null: zeros
  const float* addend;  // as out; null: zeros
  float* out;           // [count, width]
};

// A row, quantized: element k is bytes[k] * scales[k / block].
struct BlockedBytesRow {
  const std::int8_t* bytes;
  const float* scales;
  const std::int32_t* sums;  // of the bytes of each block
};

// The most rows that one call of multiply or multiply_bytes takes, and the most panels of multiply.
inline constexpr int kMostBlockedCount = 4;
inline constexpr int kMostBlockedPanels = 4;

struct BlockedKernels {
  // Rows of floats by panels from this one on. A row gets the same sums whatever others there are.
  void (*multiply)(const BlockedPanel& panel, const float* const* rows, int count, const BlockedSums& sums);
  // out[i * kBlockedWidth + j] = sum over k of row i [k] * w(k, j), for quantized rows. Products in a block
  // are summed up as integers. Null if the CPU has no instruction for it.
  void (*multiply_bytes)(const BlockedPanel& panel, const BlockedBytesRow* rows, int count, float* out);
  // Writes the weights of rows [first, first + count) as floats: to[k * step + j]. `first` and `count` are
  // multiples of kBlockedRows.
  void (*expand)(const BlockedPanel& panel, std::int64_t first, std::int64_t count, float* to,
                 std::int64_t step);
  // Quantizes a row block by block: its elements rounded to 127ths of the block's largest one, as a
  // BlockedBytesRow has them. The scale is NaN if an element is not finite.
  void (*quantize)(const float* x, std::int64_t depth, std::int64_t block, std::int8_t* bytes, float* scales,
                   std::int32_t* sums);
  // From so many rows on, multiplying expanded weights takes less time than `multiply`. The sums are the
  // same.
  std::int64_t rows_to_expand;
};

// The kernels of the best instruction set that this CPU and the build support.
BlockedKernels ChooseBlockedKernels();

// The same, chosen once per process.
const BlockedKernels& BestBlockedKernels();

}  // namespace rewire::kernel::cpu
