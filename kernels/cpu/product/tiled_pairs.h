// SPDX-License-Identifier: Apache-2.0
//
// Products of rows of bf16 by packed weights of bf16 with tile registers (tiled_rows.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "rewire/kernels/cpu/product/packed_rows.h"
#include "rewire/kernels/cpu/product/tiled_rows.h"

namespace rewire::kernel::cpu {

// Rows of `depth` floats, rounded to bf16.
class RoundedRows final : public TiledSource {
 public:
  RoundedRows(const float* from, std::int64_t depth) : from_(from), depth_(depth) {}
  void Write(std::int64_t first, std::int64_t count, std::byte* block) const override;

 private:
  const float* from_;
  std::int64_t depth_;
};

// As MultiplyRows of pairs, with rows from `source` in place of product.x; `tiled` is from TiledWorkspace.
// Only where HasTiles().
[[nodiscard]] Status MultiplyTiledPairs(const RowsByPanels& product, const TiledSource& source,
                                        std::byte* tiled);
// The same in workspace of its own.
[[nodiscard]] Status MultiplyTiledPairs(const RowsByPanels& product, const TiledSource& source);

// What decides whether tiles are worth it for such a product.
inline TiledProduct TiledPairs(std::int64_t rows, std::int64_t depth, const void* w, std::int64_t columns) {
  return {TileUnit::kPairs, rows, depth, w, columns};
}

}  // namespace rewire::kernel::cpu
