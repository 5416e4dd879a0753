// SPDX-License-Identifier: Apache-2.0
//
// Products of rows by packed weights of bf16 with tile registers (tile_product.h).
#pragma once

#include <cstdint>

#include "rewire/kernels/cpu/product/gemm_packed.h"
#include "rewire/kernels/cpu/product/panels/panels.h"
#include "rewire/kernels/cpu/product/tiles/tile_finish.h"
#include "rewire/kernels/cpu/product/tiles/tile_product.h"

namespace rewire::kernel::cpu {

// MultiplyRoundedRows and MultiplyPairRows (gemm_packed.h) by tiles. They take a workspace of
// TiledPairsBytes. Only where HasTiles().
[[nodiscard]] Status MultiplyRoundedRowsByTiles(const RowsByPanels& product);
[[nodiscard]] Status MultiplyPairRowsByTiles(const RowsByPanels& product);
// 0 without tiles. `depth` counts units.
std::int64_t TiledPairsBytes(std::int64_t rows, std::int64_t depth);

// Finishes rows of a product and one of its panels (tile_product.h).
class TiledPairsFinish {
 public:
  TiledPairsFinish(const RowsByPanels& product, std::int64_t panel);

  // `count` rows from `row` on. What else it is called with does not count.
  template <class... Rest>
  void operator()(std::int64_t row, std::int64_t count, const void* sums, const Rest&...) {
    Run(row, count, sums);
  }

 private:
  void Run(std::int64_t row, std::int64_t count, const void* sums);

  const RowsByPanels& product_;
  const TileFinishKernel kernel_ = BestTileFinishKernel();
  std::int64_t column_;
  PanelTile tile_{};
};

}  // namespace rewire::kernel::cpu
