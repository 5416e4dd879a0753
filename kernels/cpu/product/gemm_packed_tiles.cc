// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/cpu/product/gemm_packed_tiles.h"

#include "rewire/kernels/cpu/product/pack_pairs.h"
#include "rewire/kernels/cpu/product/panels/panels.h"
#include "rewire/kernels/cpu/product/tiles/tile_finish.h"

namespace rewire::kernel::cpu {
namespace {

template <class Write>
Status Multiply(const RowsByPanels& product, std::int64_t units, const Write& write) {
  const TileMatrix matrix(product.rows, units * kUnitBytes);
  return MultiplyWrittenRows(TileUnit::kPairs, matrix, units, product.w, product.columns, write,
                             [&](std::int64_t panel) { return TiledPairsFinish(product, panel); });
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
                           [&](std::int64_t panel) { return TiledPairsFinish(product, panel); });
  }
  return Multiply(product, product.depth, [&](std::int64_t row, std::byte* to) {
    CopyToLines({from + row * bytes, 0, bytes, 1, to, 0});
  });
}

TiledPairsFinish::TiledPairsFinish(const RowsByPanels& product, std::int64_t panel)
    : product_(product), column_(panel * kPanelWidth) {
  tile_.columns = UsedOfPanel(panel, product.columns);
  tile_.bias = product.bias == nullptr ? nullptr : product.bias + column_;
  tile_.step = product.columns;
  tile_.activation = product.activation;
}

void TiledPairsFinish::Run(std::int64_t row, std::int64_t count, const void* sums) {
  const std::int64_t at = row * product_.columns + column_;
  tile_.count = static_cast<int>(count);
  tile_.addend = product_.addend.From(at);
  tile_.out = product_.out + at;
  if (product_.rounded != nullptr) tile_.rounded = product_.rounded + at;
  kernel_(tile_, static_cast<const float*>(sums));
}

}  // namespace rewire::kernel::cpu
