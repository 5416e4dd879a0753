// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/cpu/product/gemm_packed_integers.h"

#include <algorithm>

#include "rewire/kernels/cpu/product/panels/blocks.h"
#include "rewire/kernels/cpu/product/tiles/tile_product.h"
#include "rewire/kernels/cpu/support/parallel.h"

namespace rewire::kernel::cpu {
namespace {

struct Rows {
  const IntegerProduct& product;
  const std::uint8_t* x;
  std::int64_t depth;
  TensorView out;

  // Rows [begin, end) by one panel. `sums` has those of the rows from `begin` on, if the weights have zeros.
  void Multiply(std::int64_t panel, std::int64_t begin, std::int64_t end, const SumsOfRows& sums,
                Pace& pace) const {
    const IntegerPanelKernel& kernel = BestIntegerPanelKernel();
    const std::uint8_t* pointers[kMostPanelRows];
    IntegerTile tile = product.Panel(panel, 1, depth);
    tile.rows = pointers;
    for (std::int64_t i = begin; i < end; i += tile.count) {
      tile.count = RowsOfTile(end - i, kernel.rows);
      if (!pace.Spend(ProductsOf(tile.count, depth))) return;
      for (int r = 0; r < tile.count; ++r) pointers[r] = x + (i + r) * depth;
      tile.row_sums = sums.From(i - begin);
      tile.out = ElementAt(out, i * product.columns + panel * kPanelWidth);
      kernel.run(tile);
    }
  }
};

Status MultiplyByteRows(const IntegerProduct& product, const std::uint8_t* from, std::int64_t rows,
                        std::int64_t depth, bool is_signed, TensorView out) {
  const std::int64_t units = PaddedDepth(depth) / kQuad;
  const auto flip = static_cast<std::byte>(is_signed ? 0x80 : 0);
  const auto write = [&](std::int64_t row, std::byte* to) {
    CopyToLines({reinterpret_cast<const std::byte*>(from + row * depth), 0, depth, 1, to, 0, flip});
  };
  return MultiplyWrittenRows(TileUnit::kBytes, TileMatrix(rows, depth), units, product.w, product.columns,
                             write,
                             [&](std::int64_t panel) { return TiledIntegersFinish(product, panel, out); });
}

}  // namespace

Status MultiplyIntegerRows(const IntegerProduct& product, TensorView x, std::int64_t rows, std::int64_t depth,
                           TensorView out) {
  constexpr std::int64_t kBlock = 262144;     // bytes that stay in the second cache
  constexpr std::int64_t kTaskWork = 524288;  // products that are worth a thread's while
  const auto* from = static_cast<const std::uint8_t*>(x.raw_data());
  const bool is_signed = x.Is<std::int8_t>();
  if (TilesAreWorthIt(rows, PaddedDepth(depth) / kQuad, product.columns))
    return MultiplyByteRows(product, from, rows, depth, is_signed, out);
  // Tiles read whole quads: behind the last row there must be memory.
  if (is_signed || depth % kQuad != 0) {
    std::uint8_t* copy = nullptr;
    if (Status s = Workspace(x.size() + kQuad, &copy); !s.ok()) return s;
    Status copied = SerialFor(x.size(), 1, [&](std::int64_t begin, std::int64_t end) {
      CopyUnsigned(from + begin, end - begin, is_signed, copy + begin);
    });
    if (!copied.ok()) return copied;
    from = copy;
  }
  const Rows task_rows{product, from, depth, out};
  const std::int64_t panels = PanelCount(product.columns);
  const std::int64_t block = RowsOfBlock(
      rows, 64, std::min(kBlock / std::max<std::int64_t>(1, depth), SumsOfRows::kMostRows), panels);
  const std::int64_t blocks = (rows + block - 1) / block;
  return ParallelFor(Times(blocks, panels),
                     GrainOf(kTaskWork, std::min(rows, block), Plus(depth, kIntegerSumWork), kPanelWidth),
                     [&](std::int64_t begin, std::int64_t end, Pace& pace) {
                       SumsOfRows sums(product.w_zero != nullptr && panels > 1);
                       for (std::int64_t task = begin; task < end && !pace.stopped(); ++task) {
                         const std::int64_t first = task / panels * block,
                                            last = std::min(rows, first + block);
                         sums.Take(from + first * depth, last - first, depth, pace);
                         task_rows.Multiply(task % panels, first, last, sums, pace);
                       }
                     });
}

TiledIntegersFinish::TiledIntegersFinish(const IntegerProduct& product, std::int64_t panel, TensorView out)
    : tile_(product.Panel(panel, 1, 0)),
      out_(static_cast<std::byte*>(ElementAt(out, panel * kPanelWidth))),
      row_bytes_(product.columns * out.element_bytes()) {}

void TiledIntegersFinish::operator()(std::int64_t row, std::int64_t count, const void* sums,
                                     const TileRows& rows, std::int64_t first) {
  tile_.count = static_cast<int>(count);
  tile_.out = out_ + row * row_bytes_;
  std::int32_t of_rows[kBlockRows];
  if (tile_.w_zero != nullptr) SumBytes(rows.From(first), count, of_rows);
  kernel_.finish(tile_, static_cast<const std::int32_t*>(sums), of_rows);
}

void DeclareIntegerRows(WorkspaceSizes& sizes, std::int64_t rows, std::int64_t depth) {
  // The rows are either copied or written for tiles.
  const std::int64_t tiled = HasTiles() ? TileMatrix(rows, depth).Bytes(0) : 0;
  sizes.Take(std::max(Plus(Times(rows, depth), kQuad), tiled), 1);
}

}  // namespace rewire::kernel::cpu
