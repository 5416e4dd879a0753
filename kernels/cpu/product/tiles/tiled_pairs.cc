// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/cpu/product/tiles/tiled_pairs.h"

#include "rewire/kernels/cpu/product/pair_rows.h"
#include "rewire/kernels/cpu/product/panels.h"
#include "rewire/kernels/cpu/product/tiles/tile_finish.h"

namespace rewire::kernel::cpu {
namespace {

template <class Write>
Status Multiply(const RowsByPanels& product, std::int64_t units, const Write& write) {
  const TileMatrix matrix(product.rows, units * kUnitBytes);
  return MultiplyWrittenRows(
      TileUnit::kPairs, matrix, units, product.w, product.columns, write,
      [&](std::int64_t row, std::int64_t count, std::int64_t panel, const void* sums, const TileRows&) {
        FinishPairs(product, row, count, panel, static_cast<const float*>(sums));
      });
}

}  // namespace

std::int64_t TiledPairsBytes(std::int64_t rows, std::int64_t depth) {
  return HasTiles() ? TileMatrix(rows, Times(depth, kUnitBytes)).Bytes(0) : 0;
}

Status MultiplyRoundedRowsByTiles(const RowsByPanels& product) {
  const std::int64_t units = PairsOf(product.depth);
  return Multiply(product, units, [&](std::int64_t row, std::byte* to) {
    RoundToLines(product.x + row * product.depth, product.depth, to);
  });
}

Status MultiplyPairRowsByTiles(const RowsByPanels& product) {
  const auto* from = reinterpret_cast<const std::byte*>(product.x);
  const std::int64_t bytes = product.depth * kUnitBytes;
  // Rows that lie as tiles read them are not copied, if no rows behind the last are read.
  const bool aligned = reinterpret_cast<std::uintptr_t>(from) % kLineBytes == 0;
  if (aligned && TileRowBytes(bytes) == bytes && product.rows % (kBlockRows / 2) == 0) {
    constexpr std::int64_t kStart = 0;
    const TileRows rows = {from, bytes, 1, &kStart, product.depth};
    return MultiplyByTiles({TileUnit::kPairs, rows, product.rows, product.w, product.columns},
                           [&](std::int64_t row, std::int64_t count, std::int64_t panel, const void* sums) {
                             FinishPairs(product, row, count, panel, static_cast<const float*>(sums));
                           });
  }
  return Multiply(product, product.depth,
                  [&](std::int64_t row, std::byte* to) { CopyToLines(from + row * bytes, bytes, to); });
}

void FinishPairs(const RowsByPanels& product, std::int64_t row, std::int64_t count, std::int64_t panel,
                 const float* sums) {
  const std::int64_t column = panel * kPanelWidth;
  const std::int64_t at = row * product.columns + column;
  PanelTile tile{};
  tile.count = static_cast<int>(count);
  tile.columns = UsedOfPanel(panel, product.columns);
  tile.bias = product.bias == nullptr ? nullptr : product.bias + column;
  tile.addend = product.addend.From(at);
  tile.out = product.out + at;
  if (product.rounded != nullptr) tile.rounded = product.rounded + at;
  tile.step = product.columns;
  tile.activation = product.activation;
  BestTileFinishKernel()(tile, sums);
}

}  // namespace rewire::kernel::cpu
