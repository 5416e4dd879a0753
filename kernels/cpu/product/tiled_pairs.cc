// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/cpu/product/tiled_pairs.h"

#include <algorithm>

#include "rewire/kernels/cpu/product/pair_rows.h"
#include "rewire/kernels/cpu/product/panels.h"

namespace rewire::kernel::cpu {

void RoundedRows::Write(std::int64_t first, std::int64_t count, std::byte* block) const {
  static const RoundFloats kRound = ChooseRoundFloats(true);
  constexpr std::int64_t kStepFloats = 2 * kStepUnits;
  for (std::int64_t i = 0; i < count; ++i) {
    const float* from = from_ + (first + i) * depth_;
    std::byte* row = block + i * kLineBytes;
    for (std::int64_t k = 0; k < depth_; k += kStepFloats) {
      kRound(from + k, 1, std::min(kStepFloats, depth_ - k),
             reinterpret_cast<std::uint16_t*>(row + TiledAt(0, k / 2)));
    }
    PadUnits(PairsOf(depth_), row);
  }
}

Status MultiplyTiledPairs(const RowsByPanels& product, const TiledSource& source) {
  std::byte* tiled = nullptr;
  if (Status s = TiledWorkspace(product.rows, product.depth, &tiled); !s.ok()) return s;
  return MultiplyTiledPairs(product, source, tiled);
}

Status MultiplyTiledPairs(const RowsByPanels& product, const TiledSource& source, std::byte* workspace) {
  const PanelKernel& kernel = BestPanelKernel(true);
  const TiledProduct tiled = TiledPairs(product.rows, product.depth, product.w, product.columns);
  return MultiplyTiled(
      tiled, source, workspace,
      [&](std::int64_t row, std::int64_t count, std::int64_t panel, const void* sums, const std::byte*) {
        const std::int64_t column = panel * kPanelWidth;
        const std::int64_t at = row * product.columns + column;
        PanelTile tile{};
        tile.count = static_cast<int>(count);
        tile.columns = UsedOfPanel(panel, product.columns);
        tile.bias = product.bias == nullptr ? nullptr : product.bias + column;
        tile.addend = product.addend == nullptr ? nullptr : product.addend + at;
        tile.out = product.out + at;
        if (product.rounded != nullptr) tile.rounded = product.rounded + at;
        tile.step = product.columns;
        tile.activation = product.activation;
        kernel.finish(tile, static_cast<const float*>(sums));
      });
}

}  // namespace rewire::kernel::cpu
