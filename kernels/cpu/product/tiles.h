// SPDX-License-Identifier: Apache-2.0
//
// Products by tile registers (Intel's AMX, "Intel 64 and IA-32 Architectures Software Developer's Manual",
// volume 2): 32 rows by a panel of weights (panels.h, integer_panels.h). They multiply eight times as many
// bytes, and sixteen times as many bf16, in a cycle as vectors do on CPUs that have both.
//
// The rows are written in tiled form first, since tiles are read six times as fast where each line of 64
// bytes is a line of the cache. Tiled rows are blocks of kBlockRows rows. A block has steps of kStepUnits
// units of four bytes, and a step has as many units of each row, row after row. The depth is padded with
// zeros to whole steps.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rewire/kernels/cpu/product/panels.h"
#include "rewire/kernels/cpu/support/checked.h"

namespace rewire::kernel::cpu {

inline constexpr std::int64_t kBlockRows = 32;
inline constexpr std::int64_t kStepUnits = 16;
inline constexpr std::int64_t kUnitBytes = 4;
inline constexpr std::int64_t kLineBytes = kStepUnits * kUnitBytes;  // of a row in a step
inline constexpr std::int64_t kStepBytes = kBlockRows * kLineBytes;

constexpr std::int64_t UnitsOf(std::int64_t bytes) { return (bytes + kUnitBytes - 1) / kUnitBytes; }
constexpr std::int64_t StepsOf(std::int64_t depth) { return (depth + kStepUnits - 1) / kStepUnits; }
constexpr std::int64_t BlocksOf(std::int64_t rows) { return (rows + kBlockRows - 1) / kBlockRows; }
// Where unit k of the block's row i lies, in bytes.
constexpr std::int64_t TiledAt(std::int64_t i, std::int64_t k) {
  return k / kStepUnits * kStepBytes + i * kLineBytes + k % kStepUnits * kUnitBytes;
}

// Whether the CPU multiplies bf16 and bytes by tiles, and the operating system lets this process do so. It is
// asked once, at the first call.
bool HasTiles();

// Writes bytes to a row of a block, from its unit `at` on, and zeros up to the next whole unit. If `from` is
// null, all are zeros. `row` is where the row's first line begins. Only where HasTiles().
void WriteBytes(const std::byte* from, std::int64_t bytes, std::int64_t at, std::byte* row);
// Fills such a row with zeros from its unit `at` on up to the whole step.
inline void PadUnits(std::int64_t at, std::byte* row) {
  WriteBytes(nullptr, (kStepUnits - at % kStepUnits) % kStepUnits * kUnitBytes, at, row);
}

// The sums of the unsigned bytes of each row of a block. Only where HasTiles().
void SumBytes(const std::byte* block, std::int64_t rows, std::int64_t depth, std::int32_t* sums);

// What a unit holds, and of what type the sums are.
enum class TileUnit {
  kPairs,       // two bf16 by two bf16, added as floats; see panels.h
  kBytes,       // four unsigned bytes by four signed ones, added as 32-bit integers, which wrap
  kSignedBytes  // four signed bytes by four signed ones
};

// The tile registers of the calling thread, from the constructor to the destructor. Between them, nothing
// else on the thread may use tiles. Only where HasTiles().
class TileRegisters {
 public:
  TileRegisters();
  ~TileRegisters();
  TileRegisters(const TileRegisters&) = delete;
  TileRegisters& operator=(const TileRegisters&) = delete;

  // Multiplies rows [0, rows) of a block, at most kBlockRows, by a panel of `width` columns. `depth` counts
  // units. Row i of the sums begins at sums + i * kPanelWidth. Rows up to the next multiple of 16 are
  // written, too. The block and the sums must be 64-byte aligned; the panel should be.
  void Multiply(TileUnit unit, const std::byte* block, std::int64_t rows, std::int64_t depth,
                const void* panel, std::int64_t width, void* sums) const;
};

}  // namespace rewire::kernel::cpu
