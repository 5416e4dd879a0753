// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/cpu/product/gemm_panels.h"

#include <algorithm>

#include "rewire/kernels/cpu/product/panels/panels.h"
#include "rewire/kernels/cpu/support/parallel.h"

namespace rewire::kernel::cpu {
namespace {

// The part of a panel that is packed at once. It stays in the first cache while rows pass.
constexpr std::int64_t kDepth = 256;

// A panel as it is multiplied: part of it, from k0 on.
class PanelPart {
 public:
  // Columns [first, first + used) of `b`, in a panel of `width`.
  PanelPart(const Matrix<float>& b, std::int64_t first, std::int64_t used, std::int64_t width)
      : b_(b), first_(first), used_(used), width_(width) {}

  // True where the matrix is a panel already, of any depth.
  bool IsPanel() const { return b_.column == 1 && b_.row == width_ && used_ == width_; }

  const float* Take(std::int64_t k0, std::int64_t depth) {
    const float* from = &b_.at(k0, first_);
    if (IsPanel()) return from;
    float* to = packed_;
    for (std::int64_t k = 0; k < depth; ++k, from += b_.row, to += width_) {
      if (b_.column == 1 && used_ == kPanelWidth) {
        std::copy_n(from, kPanelWidth, to);  // a known length: some vectors
        continue;
      }
      for (std::int64_t j = 0; j < used_; ++j) to[j] = from[j * b_.column];
      std::fill(to + used_, to + width_, 0.0F);
    }
    return packed_;
  }

 private:
  const Matrix<float>& b_;
  std::int64_t first_, used_, width_;
  alignas(64) float packed_[kDepth * kPanelWidth];
};

// Rows [begin, end) of one panel of columns.
void MultiplyPanel(const PanelProduct& product, std::int64_t panel, std::int64_t begin, std::int64_t end,
                   Pace& pace) {
  const PanelKernel& kernel = BestPanelKernel();
  const std::int64_t first = panel * kPanelWidth;
  const std::int64_t used = UsedOfPanel(panel, product.columns);
  const std::int64_t width = WidthOfPanel(panel, product.columns);
  PanelPart part(product.b, first, used, width);
  const std::int64_t step = part.IsPanel() ? product.depth : kDepth;
  const float* pointers[kMostPanelRows];
  PanelTile tile{};
  tile.rows = pointers;
  tile.segments = 1;
  tile.columns = used;
  tile.step = product.c_row;
  for (std::int64_t k0 = 0; k0 < product.depth; k0 += step) {
    tile.depth = std::min(step, product.depth - k0);
    if (!pace.Spend(1 + tile.depth)) return;
    tile.panel = part.Take(k0, tile.depth);
    for (std::int64_t i = begin; i < end; i += tile.count) {
      tile.count = RowsOfTile(end - i, kernel.rows);
      if (!pace.Spend(ProductsOf(tile.count, tile.depth))) return;
      for (int r = 0; r < tile.count; ++r) pointers[r] = &product.a.at(i + r, k0);
      tile.out = product.c + i * product.c_row + first;
      tile.addend = product.add || k0 > 0 ? tile.out : nullptr;
      kernel.run(tile);
    }
  }
}

// The product of one element of the loop.
PanelProduct ProductAt(PanelProduct product, const Layout<3>& batches, std::int64_t index) {
  for (int i = batches.rank - 1; i >= 0; --i) {
    const std::int64_t at = index % batches.dims[i];
    index /= batches.dims[i];
    product.c += at * batches.strides[i][0];
    product.a.data += at * batches.strides[i][1];
    product.b.data += at * batches.strides[i][2];
  }
  return product;
}

}  // namespace

Status MultiplyByPanels(const PanelProduct& product, const Layout<3>& batches) {
  // So many rows lie in the second cache while one panel after the other is multiplied, and are enough to be
  // worth packing one for. Fewer make up tasks where there are few panels.
  constexpr std::int64_t kRows = 256, kFewRows = 64, kManyTasks = 16;
  const std::int64_t count = Times(batches.rows(), batches.inner());
  const std::int64_t panels = PanelCount(product.columns);
  const std::int64_t most = Times(count, panels) < kManyTasks ? kFewRows : kRows;
  const std::int64_t groups = (product.rows - 1) / most + 1;
  // Groups of like size.
  const std::int64_t rows = (product.rows - 1) / groups + 1;
  const std::int64_t grain = GrainOf(8 * kGrain, std::min(rows, product.rows), kPanelWidth, product.depth);
  return ParallelFor(Times(count, groups, panels), grain,
                     [&](std::int64_t begin, std::int64_t end, Pace& pace) {
                       for (std::int64_t task = begin; task < end && !pace.stopped(); ++task) {
                         const std::int64_t first = task / panels % groups * rows;
                         MultiplyPanel(ProductAt(product, batches, task / panels / groups), task % panels,
                                       first, std::min(product.rows, first + rows), pace);
                       }
                     });
}

}  // namespace rewire::kernel::cpu
