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

#include "rewire/kernels/cpu/product/panels/panels.h"
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

// A TileUnit says what a unit holds, and of what type the sums are.
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

// The right side: a panel of `width` columns of weights, whose rows are the units of all segments of the left
// side. It has a copy of its last units with zeros behind them, for tiles that reach beyond the end.
class TileWeights {
 public:
  // `panel` has `units` units of each column. Segments have `depth` of them.
  TileWeights(const void* panel, std::int64_t units, std::int64_t depth, std::int64_t width);

  const std::byte* panel() const { return panel_; }
  std::int64_t width() const { return width_; }
  // The last `bytes` of them, fewer than kLineUnits units, with zeros behind. A unit of all columns has
  // `unit_bytes`.
  const std::byte* Last(std::int64_t bytes, std::int64_t unit_bytes) const {
    return last_ + kLineUnits * unit_bytes - bytes;
  }

 private:
  const std::byte* panel_;
  std::int64_t width_;
  alignas(kLineBytes) std::byte last_[2 * kLineUnits * kPanelWidth * kUnitBytes];
};

// The tile registers of the calling thread, from the constructor to the destructor. Between them, nothing
// else on the thread may use tiles. Only where HasTiles().
class TileRegisters {
 public:
  TileRegisters();
  ~TileRegisters();
  TileRegisters(const TileRegisters&) = delete;
  TileRegisters& operator=(const TileRegisters&) = delete;

  // Multiplies `count` rows, at most kBlockRows, by a panel. Row i of the sums begins at sums + i *
  // kPanelWidth; sums must be aligned to lines. Rows up to the next multiple of 16 are read, and their sums
  // written. A weight that is not finite makes NaN of its column.
  void Multiply(TileUnit unit, const TileRows& rows, std::int64_t count, const TileWeights& weights,
                void* sums) const;
};

// Rows of bytes, from_step apart, to rows that are to_step apart. The bits of `flip` are turned in each byte:
// with 0x80, signed bytes become unsigned ones, 128 higher.
struct RowsToLines {
  const std::byte* from;
  std::int64_t from_step, bytes, rows;
  std::byte* to;
  std::int64_t to_step;
  std::byte flip{0};
};
// Copies them, and writes zeros behind each row up to a whole line. A row may overlap the lines from its own
// on, where it does not begin before them. Only where HasTiles().
void CopyToLines(const RowsToLines& copy);
// The sums of the unsigned bytes of rows. Only where HasTiles().
void SumBytes(const TileRows& rows, std::int64_t count, std::int32_t* sums);

}  // namespace rewire::kernel::cpu
