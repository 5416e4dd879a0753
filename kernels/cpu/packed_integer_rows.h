// SPDX-License-Identifier: Apache-2.0
// A matrix of rows of bytes in memory by packed weights, on the program's threads.
#pragma once

#include <cstdint>

#include "kernels/cpu/integer_product.h"

namespace rewire::kernel::cpu {

// out [rows, columns] from x [rows, depth], both contiguous and checked; takes what the Declare function
// says. From the kernel's own thread only.
Status MultiplyIntegerRows(const IntegerProduct& product, TensorView x, std::int64_t rows, std::int64_t depth,
                           TensorView out);
void DeclareIntegerRows(WorkspaceSizes& sizes, std::int64_t x_size);

}  // namespace rewire::kernel::cpu
