// SPDX-License-Identifier: Apache-2.0
//
// Multiplies rows of floats by packed weights of 8 bits (integer_panels.h) that have a scale for each column,
// on the program's threads. Where the CPU multiplies bytes faster than floats, each row is rounded to numbers
// of 16 or 24 bits (pack_bytes.h). Otherwise, and for rows that have no such form, the weights become floats,
// a piece that the first cache holds at once.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rewire/kernels/cpu/elementwise/activation_attribute.h"
#include "rewire/kernels/cpu/support/workspace_sizes.h"
#include "rewire/vm/kernel/status.h"

namespace rewire::kernel::cpu {

// out [rows, columns] = activation(x [rows, depth] by w * scale [columns] + bias [columns] + addend [rows,
// columns]); bias and addend may be null, addend may be out. All arguments must be checked.
struct RowsByBytes {
  const float* x;
  std::int64_t rows, depth;
  const std::int8_t* w;
  std::int64_t columns;
  int limbs;  // bytes that the numbers have, 2 or 3
  const float *scale, *bias, *addend;
  Activation activation;
  float* out;
};

// Scratch of several products, which the first of them takes. The later ones must have as many rows, and be
// as deep.
struct RowsByBytesScratch {
  std::byte* block = nullptr;
};

// Takes the workspace that DeclareRowsByBytes declares, once for a scratch. Call it only from the kernel's
// own thread.
[[nodiscard]] Status MultiplyRowsByBytes(const RowsByBytes& product, RowsByBytesScratch* scratch);
[[nodiscard]] Status MultiplyRowsByBytes(const RowsByBytes& product);
void DeclareRowsByBytes(WorkspaceSizes& sizes, std::int64_t rows, std::int64_t depth, int limbs);

}  // namespace rewire::kernel::cpu
