// SPDX-License-Identifier: Apache-2.0
//
// Moves elements from one layout to another. Transpose, slice, concat, split, expand and pad all use it.
#pragma once

#include <cstdint>

#include "rewire/kernels/cpu/support/layout.h"

namespace rewire::kernel::cpu {

// Elements of 1, 2, 4, 8 or 16 bytes can be moved.
Status CheckMovable(const char* what, TensorView tensor);

// Operand 0 of the layout is the destination, operand 1 the source; strides count elements. The memory must
// not overlap.
Status CopyStrided(const Layout<2>& layout, std::int64_t element_bytes, void* out, const void* in);

}  // namespace rewire::kernel::cpu
