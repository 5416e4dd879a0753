// SPDX-License-Identifier: Apache-2.0
//
// Multiplies rows of bytes by packed weights, on the program's threads.
#pragma once

#include <cstdint>

#include "rewire/kernels/cpu/product/integer_product.h"
#include "rewire/kernels/cpu/product/tiles/tile_product.h"

namespace rewire::kernel::cpu {

// out [rows, columns] from x [rows, depth]. Both must be contiguous and checked. Takes the workspace that the
// Declare function declares. Call it only from the kernel's own thread.
Status MultiplyIntegerRows(const IntegerProduct& product, TensorView x, std::int64_t rows, std::int64_t depth,
                           TensorView out);
void DeclareIntegerRows(WorkspaceSizes& sizes, std::int64_t rows, std::int64_t depth);

// Finishes `count` rows of sums by tiles from `row` on, and one panel.
void FinishIntegers(const IntegerProduct& product, const TileRows& rows, std::int64_t row, std::int64_t count,
                    std::int64_t panel, const std::int32_t* sums, TensorView out);

}  // namespace rewire::kernel::cpu
