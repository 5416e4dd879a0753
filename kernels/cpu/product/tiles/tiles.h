// SPDX-License-Identifier: Apache-2.0
//
// Products by tile registers (Intel's AMX, "Intel 64 and IA-32 Architectures Software Developer's Manual",
// volume 2): 32 rows by a panel of weights (panels.h, integer_panels.h). They multiply eight times as many
// bytes, and sixteen times as many bf16, in a cycle as vectors do on CPUs that have both.
//
// Tiles are read in lines of 64 bytes, six times as fast if each of them is a line of the cache. So all
// distances here are multiples of kLineBytes, and depths are padded with zeros to whole lines.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rewire/kernels/cpu/product/panels.h"
#include "rewire/kernels/cpu/support/checked.h"

namespace rewire::kernel::cpu {

inline constexpr std::int64_t kBlockRows = 32;
inline constexpr std::int64_t kUnitBytes = 4;
inline constexpr std::int64_t kLineBytes = 64;
inline constexpr std::int64_t kLineUnits = kLineBytes / kUnitBytes;

constexpr std::int64_t UnitsOf(std::int64_t bytes) { return (bytes + kUnitBytes - 1) / kUnitBytes; }
// How far apart rows of so many bytes lie. Not by a large power of two, so that they share few places of the
// first cache.
constexpr std::int64_t TileRowBytes(std::int64_t bytes) {
  const std::int64_t whole = Times((bytes + kLineBytes - 1) / kLineBytes, kLineBytes);
  return whole % 1024 == 0 ? Plus(whole, kLineBytes) : whole;
}

// Whether the CPU multiplies bf16 and bytes by tiles, and the operating system lets this process do so. It is
// asked once, at the first call.
bool HasTiles();

// What a unit holds, and of what type the sums are.
enum class TileUnit {
  kPairs,       // two bf16 by two bf16, added as floats; see panels.h
  kBytes,       // four unsigned bytes by four signed ones, added as 32-bit integers, which wrap
  kSignedBytes  // four signed bytes by four signed ones
};

// The left side: rows at equal distances. Unit k of segment s of row i lies at from + i * row_bytes +
// segment_at[s] + k * kUnitBytes. Rows may overlap, as the windows of a convolution do.
struct TileRows {
  const std::byte* from;
  std::int64_t row_bytes;
  std::int64_t segments;
  const std::int64_t* segment_at;  // bytes
  std::int64_t depth;              // units of a segment; behind them are zeros, up to a whole line

  std::int64_t units() const { return segments * depth; }
  TileRows From(std::int64_t row) const {
    TileRows rows = *this;
    rows.from += row * row_bytes;
    return rows;
  }
};

// The tile registers of the calling thread, from the constructor to the destructor. Between them, nothing
// else on the thread may use tiles. Only where HasTiles().
class TileRegisters {
 public:
  TileRegisters();
  ~TileRegisters();
  TileRegisters(const TileRegisters&) = delete;
  TileRegisters& operator=(const TileRegisters&) = delete;

  // Multiplies `count` rows, at most kBlockRows, by a panel of `width` columns, whose rows are the units of
  // all segments. Row i of the sums begins at sums + i * kPanelWidth; sums must be aligned to lines. Rows up
  // to the next multiple of 16 are read, and their sums written. A weight that is not finite makes NaN of its
  // column.
  void Multiply(TileUnit unit, const TileRows& rows, std::int64_t count, const void* panel,
                std::int64_t width, void* sums) const;
};

// Copies bytes, and writes zeros behind them up to a whole line. The bits of `flip` are turned in each byte:
// with 0x80, signed bytes become unsigned ones, 128 higher. Only where HasTiles().
void CopyToLines(const std::byte* from, std::int64_t bytes, std::byte* to, std::byte flip = std::byte{0});
// Copies `count` pieces of so many bytes, `step` apart, to lines `to_step` apart, and writes zeros behind
// each up to a whole line. Piece i may overlap lines from i on, where it does not begin before them.
void SpreadToLines(const std::byte* from, std::int64_t step, std::int64_t bytes, std::int64_t count,
                   std::byte* to, std::int64_t to_step);
// The sums of the unsigned bytes of rows. Only where HasTiles().
void SumBytes(const TileRows& rows, std::int64_t count, std::int32_t* sums);

}  // namespace rewire::kernel::cpu
