// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/cpu/product/gemm_packed.h"

#include <algorithm>

#include "rewire/kernels/cpu/product/gemm_packed_tiles.h"
#include "rewire/kernels/cpu/product/pack_pairs.h"
#include "rewire/kernels/cpu/product/panels/blocks.h"
#include "rewire/kernels/cpu/product/panels/panels.h"
#include "rewire/kernels/cpu/support/cache.h"
#include "rewire/kernels/cpu/support/parallel.h"

namespace rewire::kernel::cpu {
namespace {

// Whether the thread reads these panels backward this time, which it does every other time: what it read last
// is still in its CPU's caches, and is read first. Read from the same end each time, weights that just exceed
// a cache would find none of themselves there. Panels whose bit others share may miss that, and no more.
bool IsReadBackward(const float* panels) {
  thread_local std::uint64_t backward = 0;
  constexpr std::uint64_t kSpread = 0x9e3779b97f4a7c15;  // so that the upper bits depend on the whole address
  const std::uint64_t bit = std::uint64_t{1} << (reinterpret_cast<std::uintptr_t>(panels) * kSpread >> 58);
  backward ^= bit;
  return (backward & bit) != 0;
}

// Rows [begin, end) by panels [first, last). One tile waits for the weights and goes by all of them at once;
// several go by one or two panels after the other, which stay in the second cache.
bool MultiplyBlock(const RowsByPanels& product, std::int64_t first, std::int64_t last, std::int64_t begin,
                   std::int64_t end, Pace& pace) {
  const PanelKernel& kernel = BestPanelKernel(product.unit);
  const bool one_tile = end - begin <= kernel.rows;
  // Few enough to be run without asking.
  constexpr std::int64_t kAtOnce = 16 * kPace;
  const bool few = Times(last - first, product.depth) <= kAtOnce;
  const std::int64_t at_once = !one_tile ? PanelsAtOnce(kernel, product.depth)
                               : few     ? last - first
                                         : std::max<std::int64_t>(1, kAtOnce / product.depth);
  const std::int64_t depth_at_once = Times(at_once, product.depth);
  const bool is_added = product.addend.floats != nullptr || product.addend.rounded != nullptr;
  const float* rows[kMostPanelRows];
  PanelTile tile;
  tile.rows = rows;
  tile.segments = 1;
  tile.depth = product.depth;
  tile.step = product.columns;
  tile.activation = product.activation;
  tile.backward =
      one_tile && IsReadBackward(UnitsAt(product.w, first * kPanelWidth * product.depth, product.unit));
  for (std::int64_t panel = first; panel < last; panel += at_once) {
    const std::int64_t column = panel * kPanelWidth;
    tile.panel = UnitsAt(product.w, column * product.depth, product.unit);
    tile.columns = std::min(product.columns - column, std::min(at_once, last - panel) * kPanelWidth);
    tile.bias = product.bias == nullptr ? nullptr : product.bias + column;
    const int most = one_tile ? kernel.rows : MakeWide(kernel, &tile);
    std::int64_t number = 0;
    for (std::int64_t i = begin; i < end; i += tile.count) {
      // Rows cannot be computed again where their addend may be what was written.
      tile.count = is_added ? RowsOfTile(end - i, most) : RowsOfEqualTile(begin, end, most, &i);
      tile.ahead = one_tile ? 0 : AheadOf(number++, at_once * kPanelWidth * product.depth);
      if (!pace.Spend(ProductsOf(tile.count, depth_at_once))) return false;
      for (int r = 0; r < tile.count; ++r) rows[r] = product.x + (i + r) * product.depth;
      const std::int64_t at = i * product.columns + column;
      tile.addend = product.addend.From(at);
      if (product.rounded != nullptr) tile.rounded = product.rounded + at;
      tile.out = product.out + at;
      kernel.run(tile);
    }
  }
  return true;
}

// The rows that are rounded at once: with one thread as many as stay in the second cache; with more, enough
// to be worth their while. With `threads` = 0 the most of all.
std::int64_t RoundedAtOnce(std::int64_t rows, std::int64_t depth, int threads) {
  constexpr std::int64_t kFloats = 65536, kLeast = 64;
  const std::int64_t floats = threads == 1 ? kFloats : 4 * kFloats;
  return std::min(rows, std::max(kLeast, floats / std::max<std::int64_t>(1, depth) / 8 * 8));
}

}  // namespace

void DeclareRoundedRows(WorkspaceSizes& sizes, std::int64_t rows, std::int64_t depth) {
  const std::int64_t rounded = Times(RoundedAtOnce(rows, depth, 0), PairsOf(depth), kUnitBytes);
  sizes.Take(std::max({kUnitBytes, rounded, TiledPairsBytes(rows, PairsOf(depth))}), 1);
}

void DeclarePairRows(WorkspaceSizes& sizes, std::int64_t rows, std::int64_t depth) {
  if (HasTiles()) sizes.Take(TiledPairsBytes(rows, depth), 1);
}

Status MultiplyPairRows(const RowsByPanels& product) {
  return TilesAreWorthIt(product.rows, product.depth, product.columns) ? MultiplyPairRowsByTiles(product)
                                                                       : MultiplyRows(product);
}

Status MultiplyRoundedRows(const RowsByPanels& product) {
  const std::int64_t units = PairsOf(product.depth);
  if (TilesAreWorthIt(product.rows, units, product.columns)) return MultiplyRoundedRowsByTiles(product);
  const std::int64_t most =
      RoundedAtOnce(product.rows, product.depth, static_cast<int>(__rewire_kernel_api->thread_count()));
  float* rounded = nullptr;
  if (Status s = Workspace(std::max<std::int64_t>(1, Times(most, units)), &rounded); !s.ok()) return s;
  RowsByPanels part = product;
  part.x = rounded;
  part.depth = units;
  part.unit = PanelUnit::kPair;
  for (std::int64_t row = 0; row < product.rows; row += most) {
    part.rows = std::min(most, product.rows - row);
    part.addend = product.addend.From(row * product.columns);
    part.out = product.out + row * product.columns;
    if (product.rounded != nullptr) part.rounded = product.rounded + row * product.columns;
    const float* from = product.x + row * product.depth;
    if (Status s = RoundAllRows(from, part.rows, product.depth, rounded); !s.ok()) return s;
    if (Status s = MultiplyRows(part); !s.ok()) return s;
  }
  return Status();
}

bool MultiplyPanels(const RowsByPanels& product, std::int64_t first, std::int64_t last, Pace& pace) {
  return MultiplyBlock(product, first, last, 0, product.rows, pace);
}

// A block of rows, which stays in the second cache, by one panel after the other.
Status MultiplyRows(const RowsByPanels& product) {
  constexpr std::int64_t kTaskWork = 131072;  // products that are worth a thread's while, some 2 us
  constexpr std::int64_t kLeastRows = 3;      // what reading weights takes as long as multiplying by them
  const std::int64_t depth = std::max<std::int64_t>(1, product.depth);
  const std::int64_t panels = PanelCount(product.columns);
  // A product of one task goes without the divisions below, which would take as long as a small one itself.
  constexpr std::int64_t kLeastBlock = 64;
  if (product.rows <= kLeastBlock && Times(product.rows, panels, kPanelWidth, depth) <= kTaskWork) {
    Pace pace;
    static_cast<void>(MultiplyBlock(product, 0, panels, 0, product.rows, pace));
    return pace.status();
  }
  // Three eighths of the second cache: it also holds two panels, what is written, and the next weights.
  const std::int64_t floats = SecondCacheBytes() / 32 * 3;
  const std::int64_t block =
      RowsOfBlock(product.rows, kLeastBlock, std::min<std::int64_t>(floats / depth, 512), panels);
  const std::int64_t blocks = (product.rows + block - 1) / block;
  const std::int64_t rows = std::max(kLeastRows, std::min(product.rows, block));
  return ParallelFor(Times(blocks, panels), GrainOf(kTaskWork, rows, depth, kPanelWidth),
                     [&](std::int64_t begin, std::int64_t end, Pace& pace) {
                       while (begin < end) {
                         const std::int64_t first = begin / panels * block;
                         const std::int64_t count = std::min(end - begin, panels - begin % panels);
                         if (!MultiplyBlock(product, begin % panels, begin % panels + count, first,
                                            std::min(product.rows, first + block), pace))
                           return;
                         begin += count;
                       }
                     });
}

}  // namespace rewire::kernel::cpu
