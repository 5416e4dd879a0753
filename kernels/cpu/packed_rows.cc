// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/packed_rows.h"

#include <algorithm>

#include "kernels/cpu/panels.h"
#include "kernels/cpu/parallel.h"

namespace rewire::kernel::cpu {
namespace {

// Rows [begin, end) by one panel.
void MultiplyBlock(const RowsByPanels& product, std::int64_t panel, std::int64_t begin, std::int64_t end) {
  const PanelKernel& kernel = BestPanelKernel();
  const std::int64_t first = panel * kPanelWidth;
  const float* rows[kMostPanelRows];
  PanelTile tile;
  tile.rows = rows;
  tile.segments = 1;
  tile.depth = product.depth;
  tile.panel = product.w + first * product.depth;
  tile.width = WidthOfPanel(panel, product.columns);
  tile.columns = UsedOfPanel(panel, product.columns);
  tile.bias = product.bias == nullptr ? nullptr : product.bias + first;
  tile.step = product.columns;
  tile.activation = product.activation;
  for (std::int64_t i = begin; i < end; i += tile.count) {
    tile.count = RowsOfTile(end - i, kernel.rows);
    for (int r = 0; r < tile.count; ++r) rows[r] = product.x + (i + r) * product.depth;
    const std::int64_t at = i * product.columns + first;
    tile.addend = product.addend == nullptr ? nullptr : product.addend + at;
    tile.out = product.out + at;
    kernel.run(tile);
  }
}

}  // namespace

void MultiplyPanel(const RowsByPanels& product, std::int64_t panel) {
  MultiplyBlock(product, panel, 0, product.rows);
}

// A block of rows, which stays in the second cache, by one panel after the other.
void MultiplyRows(const RowsByPanels& product) {
  constexpr std::int64_t kBlock = 65536;      // floats
  constexpr std::int64_t kTaskWork = 262144;  // products that are worth a thread's while
  const std::int64_t depth = std::max<std::int64_t>(1, product.depth);
  const std::int64_t panels = PanelCount(product.columns);
  const std::int64_t block = std::clamp<std::int64_t>(kBlock / depth, 64, 512);
  const std::int64_t blocks = (product.rows + block - 1) / block;
  const std::int64_t work = std::max<std::int64_t>(1, std::min(product.rows, block)) * depth * kPanelWidth;
  ParallelFor(blocks * panels, std::max<std::int64_t>(1, kTaskWork / work),
              [&](std::int64_t begin, std::int64_t end) {
                for (std::int64_t task = begin; task < end; ++task) {
                  const std::int64_t first = task / panels * block;
                  MultiplyBlock(product, task % panels, first, std::min(product.rows, first + block));
                }
              });
}

}  // namespace rewire::kernel::cpu
