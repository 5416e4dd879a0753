// SPDX-License-Identifier: Apache-2.0
//
// Multiplies rows of bytes by packed weights, on the program's threads.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rewire/kernels/cpu/product/packed_integer_call.h"
#include "rewire/kernels/cpu/product/tiles/tile_product.h"

namespace rewire::kernel::cpu {

// out [rows, columns] from x [rows, depth]. Both must be contiguous and checked. Takes the workspace that the
// Declare function declares. Call it only from the kernel's own thread.
Status MultiplyIntegerRows(const IntegerProduct& product, TensorView x, std::int64_t rows, std::int64_t depth,
                           TensorView out);
void DeclareIntegerRows(WorkspaceSizes& sizes, std::int64_t rows, std::int64_t depth);

// Finishes rows of a product by tiles and one of its panels (tile_product.h).
class TiledIntegersFinish {
 public:
  TiledIntegersFinish(const IntegerProduct& product, std::int64_t panel, TensorView out);
  // `count` rows from `row` on, which tiles read from rows.From(first) on.
  void operator()(std::int64_t row, std::int64_t count, const void* sums, const TileRows& rows,
                  std::int64_t first);

 private:
  const IntegerPanelKernel& kernel_ = BestIntegerPanelKernel();
  IntegerTile tile_;
  std::byte* out_;  // of the panel's first column
  std::int64_t row_bytes_;
};

}  // namespace rewire::kernel::cpu
