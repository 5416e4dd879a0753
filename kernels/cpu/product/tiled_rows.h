// SPDX-License-Identifier: Apache-2.0
//
// Products of rows by packed weights with tile registers, on the program's threads: a part of the rows is
// written in tiled form (tiles.h), then multiplied by all panels.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "rewire/kernels/cpu/product/blocks.h"
#include "rewire/kernels/cpu/product/panels.h"
#include "rewire/kernels/cpu/product/tiles.h"
#include "rewire/kernels/cpu/support/parallel.h"
#include "rewire/kernels/cpu/support/workspace_sizes.h"

namespace rewire::kernel::cpu {

// Where the rows of the left side come from.
class TiledSource {
 public:
  // Writes rows [first, first + count), at most kBlockRows, as a block of tiled rows, zeros up to the whole
  // step too. Called from several threads at once, for blocks of their own.
  virtual void Write(std::int64_t first, std::int64_t count, std::byte* block) const = 0;

 protected:
  ~TiledSource() = default;
};

// Rows that lie side by side, of units.
class UnitRows final : public TiledSource {
 public:
  // `from` holds floats as Write's users see them, pairs in truth. `depth` counts units.
  UnitRows(const void* from, std::int64_t depth)
      : from_(static_cast<const std::byte*>(from)), depth_(depth) {}
  void Write(std::int64_t first, std::int64_t count, std::byte* block) const override;

 private:
  const std::byte* from_;
  std::int64_t depth_;
};

// Rows of `depth` bytes, any number of them.
class ByteRows final : public TiledSource {
 public:
  // Signed bytes become unsigned ones, 128 higher.
  ByteRows(const void* from, std::int64_t depth, bool is_signed)
      : from_(static_cast<const std::uint8_t*>(from)), depth_(depth), is_signed_(is_signed) {}
  void Write(std::int64_t first, std::int64_t count, std::byte* block) const override;

 private:
  const std::uint8_t* from_;
  std::int64_t depth_;
  bool is_signed_;
};

struct TiledProduct {
  TileUnit unit;
  std::int64_t rows, depth;  // in units
  const void* w;             // packed
  std::int64_t columns;

  // Whether tiles are worth it. With few rows, weights wait for memory, or for the registers to be set up.
  bool IsWorthIt() const {
    constexpr std::int64_t kLeastRows = 4, kLeastWork = 65536;
    return rows >= kLeastRows && HasTiles() && Times(rows, columns, depth) >= kLeastWork;
  }
};

// The rows that are in tiled form at once. With `threads` = 0 the most of all.
std::int64_t TiledAtOnce(std::int64_t rows, std::int64_t depth, std::int64_t threads);
// The bytes of the workspace of such a product, at most.
std::int64_t TiledBytes(std::int64_t rows, std::int64_t depth);
// Takes it, for products of at most so many rows.
[[nodiscard]] Status TiledWorkspace(std::int64_t rows, std::int64_t depth, std::byte** tiled);
// Declares the workspace of such a product, if there are tiles.
void DeclareTiledRows(WorkspaceSizes& sizes, std::int64_t rows, std::int64_t depth);

// Calls finish(first row, count, panel, sums) for each block of rows and panel, with their sums (tiles.h).
// `tiled` is from TiledWorkspace. `finish` is called from several threads at once. Call it only from the
// kernel's own thread.
template <class Finish>
[[nodiscard]] Status MultiplyTiled(const TiledProduct& product, const TiledSource& source, std::byte* tiled,
                                   const Finish& finish) {
  constexpr std::int64_t kTaskSteps =
      256;  // steps of a block by a panel that are worth a thread's while, 5 us
  constexpr std::int64_t kGroupBytes = 1 << 19;  // of tiled rows that stay in the second cache
  const std::int64_t steps = StepsOf(product.depth), block_bytes = Times(steps, kStepBytes);
  const std::int64_t most = TiledAtOnce(product.rows, product.depth,
                                        static_cast<std::int64_t>(__rewire_kernel_api->thread_count()));
  const std::int64_t panels = PanelCount(product.columns);
  const auto* w = static_cast<const std::byte*>(product.w);
  for (std::int64_t begin = 0; begin < product.rows; begin += most) {
    const std::int64_t rows = std::min(most, product.rows - begin), blocks = BlocksOf(rows);
    const auto rows_of = [&](std::int64_t block) { return std::min(kBlockRows, rows - block * kBlockRows); };
    Status written =
        ParallelFor(blocks, GrainOf(4 * kGrain, steps, kBlockRows),
                    [&](std::int64_t block, std::int64_t end, Pace& pace) {
                      for (; block < end && pace.Spend(Times(steps, kBlockRows)); ++block)
                        source.Write(begin + block * kBlockRows, rows_of(block), tiled + block * block_bytes);
                    });
    if (!written.ok()) return written;
    const std::int64_t group =
        RowsOfBlock(blocks, 1, std::max<std::int64_t>(1, kGroupBytes / block_bytes), panels);
    const std::int64_t groups = (blocks + group - 1) / group;
    Status multiplied = ParallelFor(
        Times(groups, panels), GrainOf(kTaskSteps, std::min(group, blocks), steps + 1),
        [&](std::int64_t task, std::int64_t end, Pace& pace) {
          const TileRegisters registers;
          alignas(kLineBytes) float sums[kBlockRows * kPanelWidth];
          for (; task < end; ++task) {
            const std::int64_t panel = task % panels;
            const std::int64_t first = task / panels * group, last = std::min(blocks, first + group);
            const std::byte* weights = w + panel * kPanelWidth * kUnitBytes * product.depth;
            const std::int64_t width = WidthOfPanel(panel, product.columns);
            for (std::int64_t block = first; block < last; ++block) {
              if (!pace.Spend(ProductsOf(4, product.depth))) return;
              registers.Multiply(product.unit, tiled + block * block_bytes, rows_of(block), product.depth,
                                 weights, width, sums);
              finish(begin + block * kBlockRows, rows_of(block), panel, static_cast<const void*>(sums),
                     static_cast<const std::byte*>(tiled + block * block_bytes));
            }
          }
        });
    if (!multiplied.ok()) return multiplied;
  }
  return Status();
}

}  // namespace rewire::kernel::cpu
