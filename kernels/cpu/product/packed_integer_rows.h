// SPDX-License-Identifier: Apache-2.0
//
// Multiplies rows of bytes by packed weights, on the program's threads.
#pragma once

#include <cstdint>

#include "rewire/kernels/cpu/product/integer_product.h"
#include "rewire/kernels/cpu/product/tiled_rows.h"

namespace rewire::kernel::cpu {

// out [rows, columns] from x [rows, depth]. Both must be contiguous and checked. Takes the workspace that the
// Declare function declares. Call it only from the kernel's own thread.
Status MultiplyIntegerRows(const IntegerProduct& product, TensorView x, std::int64_t rows, std::int64_t depth,
                           TensorView out);
void DeclareIntegerRows(WorkspaceSizes& sizes, std::int64_t rows, std::int64_t depth);

// The same product by tiles, of rows in segments of `depth` bytes (integer_panels.h), which `source` writes.
// Takes what DeclareTiledRows declares.
TiledProduct TiledIntegers(const IntegerProduct& product, std::int64_t rows, std::int64_t segments,
                           std::int64_t depth);
Status MultiplyTiledIntegers(const IntegerProduct& product, const TiledProduct& tiled,
                             const TiledSource& source, TensorView out);

}  // namespace rewire::kernel::cpu
