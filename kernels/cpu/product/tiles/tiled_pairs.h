// SPDX-License-Identifier: Apache-2.0
//
// Products of rows by packed weights of bf16 with tile registers (tile_product.h).
#pragma once

#include <cstdint>

#include "rewire/kernels/cpu/product/packed_rows.h"
#include "rewire/kernels/cpu/product/tiles/tile_product.h"

namespace rewire::kernel::cpu {

// MultiplyRoundedRows and MultiplyPairRows (packed_rows.h) by tiles. They take a workspace of
// TiledPairsBytes. Only where HasTiles().
[[nodiscard]] Status MultiplyRoundedRowsByTiles(const RowsByPanels& product);
[[nodiscard]] Status MultiplyPairRowsByTiles(const RowsByPanels& product);
// 0 without tiles. `depth` counts units.
std::int64_t TiledPairsBytes(std::int64_t rows, std::int64_t depth);

// Finishes `count` rows of a product from `row` on, and one panel.
void FinishPairs(const RowsByPanels& product, std::int64_t row, std::int64_t count, std::int64_t panel,
                 const float* sums);

}  // namespace rewire::kernel::cpu
