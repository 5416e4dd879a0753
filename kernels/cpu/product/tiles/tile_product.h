// SPDX-License-Identifier: Apache-2.0
//
// Products of rows by packed weights with tile registers (tiles.h), on the program's threads.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "rewire/kernels/cpu/product/panels/blocks.h"
#include "rewire/kernels/cpu/product/tiles/tiles.h"
#include "rewire/kernels/cpu/support/parallel.h"
#include "rewire/kernels/cpu/support/workspace_sizes.h"

namespace rewire::kernel::cpu {

// Whether tiles are worth it for such a product. `depth` counts units. With few rows, weights wait for
// memory; with little work, for the registers to be set up.
inline bool TilesAreWorthIt(std::int64_t rows, std::int64_t depth, std::int64_t columns) {
  constexpr std::int64_t kLeastRows = 4, kLeastWork = 65536;
  return rows >= kLeastRows && Times(rows, columns, depth) >= kLeastWork && HasTiles();
}

struct TileProduct {
  TileUnit unit;
  TileRows rows;  // readable up to a multiple of 16
  std::int64_t count;
  const void* w;  // packed
  std::int64_t columns;
};

// How a product is cut into tasks. A block of rows goes by all weights if these are few: its outputs are then
// written one behind the other. Else a panel goes by as many rows as stay in the second cache.
struct TileTasks {
  static constexpr std::int64_t kGroupBytes = 1 << 19;  // of rows that stay in the second cache

  std::int64_t units, panels, blocks;
  std::int64_t group;  // blocks of a task
  std::int64_t count;  // tasks
  std::int64_t steps;  // lines by a panel, and what follows them, for each block

  // `alone`: the tasks are for one thread.
  TileTasks(const TileProduct& product, bool alone) {
    units = product.rows.units();
    panels = PanelCount(product.columns);
    blocks = (product.count + kBlockRows - 1) / kBlockRows;
    steps = product.rows.segments * ((product.rows.depth + kLineUnits - 1) / kLineUnits) + 1;
    const std::int64_t block_bytes = std::max(kLineBytes, Times(kBlockRows, product.rows.row_bytes));
    const std::int64_t weights = WeightBytes(units, product.columns);
    const bool few_weights = weights <= std::min(kGroupBytes / 2, Times(blocks, block_bytes));
    const std::int64_t most = few_weights ? 1 : std::max<std::int64_t>(1, kGroupBytes / block_bytes);
    group = alone ? std::min(blocks, most) : RowsOfBlock(blocks, 1, most, panels);
    count = Times((blocks + group - 1) / group, panels);
  }
  static std::int64_t WeightBytes(std::int64_t units, std::int64_t columns) {
    return Times(units, PackedColumns(columns), kUnitBytes);
  }
};

// Runs tasks [task, end), on any thread.
template <class FinishOf>
void RunTileTasks(const TileProduct& product, const TileTasks& tasks, const FinishOf& finish_of,
                  std::int64_t task, std::int64_t end, Pace& pace) {
  const auto* w = static_cast<const std::byte*>(product.w);
  const TileRegisters registers;
  alignas(kLineBytes) std::byte sums[kBlockRows * kPanelWidth * kUnitBytes];
  for (; task < end; ++task) {
    const std::int64_t panel = task % tasks.panels;
    const std::int64_t first = task / tasks.panels * tasks.group;
    const std::int64_t last = std::min(tasks.blocks, first + tasks.group);
    const TileWeights weights(w + panel * kPanelWidth * kUnitBytes * tasks.units, tasks.units,
                              product.rows.depth, WidthOfPanel(panel, product.columns));
    auto finish = finish_of(panel);
    TileRows rows = product.rows;
    for (std::int64_t block = first; block < last; ++block) {
      const std::int64_t row = block * kBlockRows, count = std::min(kBlockRows, product.count - row);
      if (!pace.Spend(ProductsOf(4, tasks.units))) return;
      rows.from = product.rows.from + row * rows.row_bytes;
      registers.Multiply(product.unit, rows, count, weights, sums);
      finish(row, count, static_cast<const void*>(sums));
    }
  }
}

// A task of so many steps (lines by a panel) is worth a thread's while: 5 us.
inline constexpr std::int64_t kTileTaskSteps = 256;

// finish_of(panel) gives what finishes blocks of a panel: it is called with the first row, how many there
// are, and their sums (tiles.h). That happens on several threads at once. Call it only from the kernel's own
// thread.
template <class FinishOf>
[[nodiscard]] Status MultiplyByTiles(const TileProduct& product, const FinishOf& finish_of) {
  const TileTasks tasks(product, false);
  return ParallelFor(tasks.count, GrainOf(kTileTaskSteps, std::min(tasks.group, tasks.blocks), tasks.steps),
                     [&](std::int64_t task, std::int64_t end, Pace& pace) {
                       RunTileTasks(product, tasks, finish_of, task, end, pace);
                     });
}

// Rows of a matrix, written for tiles part by part.
struct TileMatrix {
  std::int64_t rows, row_bytes;

  // `bytes` of each row are used.
  TileMatrix(std::int64_t of_rows, std::int64_t bytes) : rows(of_rows), row_bytes(TileRowBytes(bytes)) {}
  // The rows that are written at once. With `threads` = 0 the most of all.
  std::int64_t AtOnce(std::int64_t threads) const {
    constexpr std::int64_t kBytes = 1 << 19;  // in the second cache, with one thread
    const std::int64_t bytes = threads == 1 ? kBytes : 4 * kBytes;
    return std::min(rows, std::max<std::int64_t>(2 * kBlockRows, bytes / std::max(kLineBytes, row_bytes)));
  }
  std::int64_t Bytes(std::int64_t threads) const {
    const std::int64_t at_once = AtOnce(threads);
    return Times(Plus(at_once, kBlockRows), row_bytes);
  }
};

// Multiplies `rows` rows by `w`: write(row, to) writes one of them, and zeros up to a whole line. `depth`
// counts units. finish_of as above; what it gives is also called with the rows as tiles read them, and the
// first of them. Takes a workspace of TileMatrix::Bytes.
template <class Write, class FinishOf>
[[nodiscard]] Status MultiplyWrittenRows(TileUnit unit, const TileMatrix& matrix, std::int64_t depth,
                                         const void* w, std::int64_t columns, const Write& write,
                                         const FinishOf& finish_of) {
  const auto threads = static_cast<std::int64_t>(__rewire_kernel_api->thread_count());
  const std::int64_t most = matrix.AtOnce(threads);
  std::byte* memory = nullptr;
  if (Status s = Workspace(matrix.Bytes(threads), &memory); !s.ok()) return s;
  for (std::int64_t begin = 0; begin < matrix.rows; begin += most) {
    const std::int64_t count = std::min(most, matrix.rows - begin);
    Status written =
        ParallelFor(count, GrainOf(4 * kGrain, depth), [&](std::int64_t row, std::int64_t end, Pace& pace) {
          for (; row < end && pace.Spend(depth); ++row) write(begin + row, memory + row * matrix.row_bytes);
        });
    if (!written.ok()) return written;
    constexpr std::int64_t kStart = 0;
    const TileRows rows = {memory, matrix.row_bytes, 1, &kStart, depth};
    Status multiplied = MultiplyByTiles({unit, rows, count, w, columns}, [&](std::int64_t panel) {
      return
          [&, finish = finish_of(panel)](std::int64_t row, std::int64_t of_block, const void* sums) mutable {
            finish(begin + row, of_block, sums, rows, row);
          };
    });
    if (!multiplied.ok()) return multiplied;
  }
  return Status();
}

}  // namespace rewire::kernel::cpu
