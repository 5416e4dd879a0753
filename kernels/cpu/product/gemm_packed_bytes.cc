// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/cpu/product/gemm_packed_bytes.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "rewire/kernels/cpu/product/pack_bytes.h"
#include "rewire/kernels/cpu/product/panels/panels.h"
#include "rewire/kernels/cpu/product/tiles/tiles.h"
#include "rewire/kernels/cpu/support/parallel.h"

namespace rewire::kernel::cpu {
namespace {

class BytesProduct : RowsByBytes {
 public:
  explicit BytesProduct(const RowsByBytes& product) : RowsByBytes(product) {}

  Status Run(RowsByBytesScratch* scratch) const {
    if (rows == 0) return Status();
    if (kernels_.multiply == nullptr || depth == 0) {
      return ForPanels(rows,
                       [&](std::int64_t panel, Pace& pace) { return MultiplyFloats(panel, 0, rows, pace); });
    }
    const std::int64_t most = AtOnce(), groups = SplitGroups(depth);
    if (scratch->block == nullptr) {
      if (Status s = Workspace(ScratchBytes(most, depth, limbs), &scratch->block); !s.ok()) return s;
    }
    const std::int64_t numbers = NumbersOfScratch(BytesOfRows(most, depth, limbs));
    Rounded rounded{};
    rounded.bytes = reinterpret_cast<std::int8_t*>(scratch->block);
    rounded.scales = reinterpret_cast<float*>(scratch->block + numbers);
    rounded.starts = reinterpret_cast<std::int32_t*>(rounded.scales + most * groups);
    for (; rounded.first < rows; rounded.first += rounded.count) {
      rounded.count = std::min(most, rows - rounded.first);
      if (Status s = Round(rounded); !s.ok()) return s;
      Status multiplied = ForPanels(rounded.count, [&](std::int64_t panel, Pace& pace) {
        return tiles_ ? MultiplyByTiles(panel, rounded, pace) : MultiplyRounded(panel, rounded, pace);
      });
      if (!multiplied.ok()) return multiplied;
    }
    return Status();
  }

  static void Declare(WorkspaceSizes& sizes, std::int64_t of_rows, std::int64_t of_depth, int of_limbs) {
    const std::int64_t row = BytesOfRow(of_depth, of_limbs);
    const std::int64_t most = std::max(4 * kBytesAtOnce, kLeastAtOnce * row);
    const std::int64_t bytes = Plus(std::min(Times(of_rows, row), most), BytesOfRows(0, of_depth, of_limbs));
    sizes.Take(
        Plus(NumbersOfScratch(bytes), OthersOfRows(std::min(of_rows, kMostAtOnce), of_depth, of_limbs)), 1);
  }

 private:
  // Rows [first, first + count) as SplitRows has them. A row that no scales serve has a first one of NaN.
  struct Rounded {
    std::int64_t first, count;
    std::int8_t* bytes;
    float* scales;
    std::int32_t* starts;
  };

  static constexpr std::int64_t kTaskWork = 262144;   // products that are worth a thread's while
  static constexpr std::int64_t kExpandedRows = 256;  // of weights, at once: 32 KiB
  static_assert(kExpandedRows % kQuad == 0);

  // How many rows are rounded at once: as many as stay in the second cache with one thread, and as many as
  // are worth their while with more. The memory for it never shrinks when a dimension grows.
  static constexpr std::int64_t kLeastAtOnce = 64, kMostAtOnce = 4096, kBytesAtOnce = 262144;
  // Rows lie as tiles read them where there are any; the last tile reads more of them.
  static std::int64_t LimbBytes(std::int64_t of_depth) {
    return HasTiles() ? TileRowBytes(of_depth) : PaddedDepth(of_depth);
  }
  static std::int64_t BytesOfRow(std::int64_t of_depth, int of_limbs) {
    return Times(of_limbs, LimbBytes(of_depth));
  }
  static std::int64_t BytesOfRows(std::int64_t count, std::int64_t of_depth, int of_limbs) {
    const std::int64_t behind = HasTiles() ? Times(kBlockRows, LimbBytes(of_depth)) : 0;
    return Plus(Times(count, BytesOfRow(of_depth, of_limbs)), behind);
  }
  // The scratch has the rows' bytes, and behind them, in a line of their own, all scales and all starts.
  static std::int64_t NumbersOfScratch(std::int64_t bytes) { return Plus(bytes, 63) / 64 * 64; }
  static std::int64_t OthersOfRows(std::int64_t count, std::int64_t of_depth, int of_limbs) {
    return Times(count, SplitGroups(of_depth), sizeof(float) + of_limbs * sizeof(std::int32_t));
  }
  static std::int64_t ScratchBytes(std::int64_t count, std::int64_t of_depth, int of_limbs) {
    return Plus(NumbersOfScratch(BytesOfRows(count, of_depth, of_limbs)),
                OthersOfRows(count, of_depth, of_limbs));
  }
  std::int64_t AtOnce() const {
    const std::int64_t bytes = __rewire_kernel_api->thread_count() > 1 ? 4 * kBytesAtOnce : kBytesAtOnce;
    return std::min(rows, std::clamp(bytes / BytesOfRow(depth, limbs), kLeastAtOnce, kMostAtOnce));
  }
  // The elements of a panel's column in `values`.
  template <typename T>
  static const T* Of(const T* values, std::int64_t panel) {
    return values == nullptr ? nullptr : values + panel * kPanelWidth;
  }
  const std::int8_t* Panel(std::int64_t panel) const { return w + panel * kPanelWidth * PaddedDepth(depth); }

  // Rows [begin, begin + count) by one panel of floats.
  bool MultiplyFloats(std::int64_t panel, std::int64_t begin, std::int64_t count, Pace& pace) const {
    alignas(64) float expanded[kExpandedRows * kPanelWidth];
    const std::int64_t width = WidthOfPanel(panel, columns), used = UsedOfPanel(panel, columns);
    float factors[kPanelWidth] = {};
    std::copy_n(Of(scale, panel), used, factors);
    const PanelKernel& kernel = BestPanelKernel();
    const float* pointers[kMostPanelRows];
    PanelTile tile{};
    tile.rows = pointers;
    tile.segments = 1;
    tile.panel = expanded;
    tile.columns = used;
    tile.step = columns;
    for (std::int64_t first = 0; first == 0 || first < depth; first += kExpandedRows) {
      tile.depth = std::min(kExpandedRows, depth - first);
      if (!pace.Spend(tile.depth * 8)) return false;
      kernels_.expand(Panel(panel), width, first, tile.depth, factors, expanded);
      tile.bias = first == 0 ? Of(bias, panel) : nullptr;
      if (first + tile.depth == depth) tile.activation = activation;
      for (std::int64_t i = begin; i < begin + count; i += tile.count) {
        tile.count = RowsOfTile(begin + count - i, kernel.rows);
        if (!pace.Spend(ProductsOf(tile.count, tile.depth))) return false;
        for (int r = 0; r < tile.count; ++r) pointers[r] = x + (i + r) * depth + first;
        const std::int64_t at = i * columns + panel * kPanelWidth;
        tile.addend = first > 0 ? out + at : addend == nullptr ? nullptr : addend + at;
        tile.out = out + at;
        kernel.run(tile);
      }
    }
    return true;
  }

  SplitTile TileOf(std::int64_t panel) const {
    SplitTile tile{};
    tile.rows.limbs = limbs;
    tile.rows.depth = depth;
    tile.rows.limb_bytes = LimbBytes(depth);
    tile.panel = Panel(panel);
    tile.width = WidthOfPanel(panel, columns);
    tile.columns = UsedOfPanel(panel, columns);
    tile.scale = Of(scale, panel);
    tile.bias = Of(bias, panel);
    tile.step = columns;
    tile.activation = activation;
    return tile;
  }
  // Lets the tile's rows begin with row i of those.
  void Begin(SplitTile* tile, std::int64_t panel, const Rounded& rounded, std::int64_t i) const {
    const std::int64_t groups = SplitGroups(depth);
    tile->rows.bytes = rounded.bytes + i * BytesOfRow(depth, limbs);
    tile->rows.scales = rounded.scales + i * groups;
    tile->rows.starts = rounded.starts + limbs * i * groups;
    const std::int64_t at = (rounded.first + i) * columns + panel * kPanelWidth;
    tile->addend = addend == nullptr ? nullptr : addend + at;
    tile->out = out + at;
  }

  // The rounded rows by one panel of bytes; the others by the panel as floats.
  bool MultiplyRounded(std::int64_t panel, const Rounded& rounded, Pace& pace) const {
    SplitTile tile = TileOf(panel);
    for (std::int64_t i = 0; i < rounded.count; i += tile.count) {
      tile.count = RowsOfTile(rounded.count - i, SplitRowsAtOnce(limbs));
      if (!pace.Spend(ProductsOf(tile.count, depth / 2))) return false;
      Begin(&tile, panel, rounded, i);
      kernels_.multiply(tile);
    }
    return MultiplyOthers(panel, rounded, pace);
  }

  // The same by tiles. Their rows are the numbers' first bytes, second ones and so on.
  bool MultiplyByTiles(std::int64_t panel, const Rounded& rounded, Pace& pace) const {
    constexpr std::int64_t kStart = 0;
    SplitTile tile = TileOf(panel);
    const TileRegisters registers;
    alignas(kLineBytes) std::int32_t sums[kBlockRows * kPanelWidth];
    alignas(kLineBytes) float totals[kSplitRowsOfBlock * kPanelWidth];
    for (std::int64_t i = 0; i < rounded.count; i += tile.count) {
      tile.count = RowsOfTile(rounded.count - i, SplitRowsOfBlock(limbs));
      if (!pace.Spend(ProductsOf(4, depth))) return false;
      Begin(&tile, panel, rounded, i);
      for (std::int64_t g = 0; g < SplitGroups(depth); ++g) {
        const std::int64_t first = g * kSplitGroup, count = std::min(kSplitGroup, PaddedDepth(depth) - first);
        const TileRows of_group = {reinterpret_cast<const std::byte*>(tile.rows.bytes) + first,
                                   tile.rows.limb_bytes, 1, &kStart, count / kQuad};
        const TileWeights weights(tile.panel + first * tile.width, of_group.depth, of_group.depth,
                                  tile.width);
        registers.Multiply(TileUnit::kSignedBytes, of_group, std::int64_t{limbs} * tile.count, weights, sums);
        kernels_.join(tile, g, sums, totals);
      }
      kernels_.finish(tile, totals);
    }
    return MultiplyOthers(panel, rounded, pace);
  }

  // The rows that no scales serve.
  bool MultiplyOthers(std::int64_t panel, const Rounded& rounded, Pace& pace) const {
    for (std::int64_t i = 0; i < rounded.count; ++i) {
      if (!std::isnan(rounded.scales[i * SplitGroups(depth)])) [[likely]]
        continue;
      if (!MultiplyFloats(panel, rounded.first + i, 1, pace)) return false;
    }
    return true;
  }

  template <typename Body>
  Status ForPanels(std::int64_t of_rows, const Body& body) const {
    return ParallelFor(PanelCount(columns), GrainOf(kTaskWork, of_rows, depth, kPanelWidth),
                       [&](std::int64_t begin, std::int64_t end, Pace& pace) {
                         for (std::int64_t panel = begin; panel < end && body(panel, pace); ++panel) {
                         }
                       });
  }

  Status Round(const Rounded& rounded) const {
    const std::int64_t row = BytesOfRow(depth, limbs), groups = SplitGroups(depth);
    return ParallelFor(rounded.count, GrainOf(16 * kGrain, depth),
                       [&](std::int64_t begin, std::int64_t end, Pace& pace) {
                         for (std::int64_t i = begin; i < end; ++i) {
                           if (!pace.Spend(row)) return;  // short rows are padded, too
                           std::int8_t* bytes = rounded.bytes + i * row;
                           float* scales = rounded.scales + i * groups;
                           std::int32_t* starts = rounded.starts + limbs * i * groups;
                           if (!kernels_.split(x + (rounded.first + i) * depth, depth, limbs,
                                               LimbBytes(depth), bytes, scales, starts)) {
                             std::fill(scales, scales + groups, std::numeric_limits<float>::quiet_NaN());
                             std::fill(starts, starts + limbs * groups, 0);
                             std::fill(bytes, bytes + row, std::int8_t{0});
                           }
                         }
                       });
  }

  const ByteRowKernels& kernels_ = BestByteRowKernels();
  // With few rows, registers would be set up for little work.
  const bool tiles_ = HasTiles() && rows >= 4;
};

}  // namespace

Status MultiplyRowsByBytes(const RowsByBytes& product, RowsByBytesScratch* scratch) {
  return BytesProduct(product).Run(scratch);
}

Status MultiplyRowsByBytes(const RowsByBytes& product) {
  RowsByBytesScratch scratch;
  return MultiplyRowsByBytes(product, &scratch);
}

void DeclareRowsByBytes(WorkspaceSizes& sizes, std::int64_t rows, std::int64_t depth, int limbs) {
  BytesProduct::Declare(sizes, rows, depth, limbs);
}

}  // namespace rewire::kernel::cpu
