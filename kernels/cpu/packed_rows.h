// SPDX-License-Identifier: Apache-2.0
// A matrix of rows in memory by packed weights, on the program's threads.
#pragma once

#include <cstdint>

#include "kernels/cpu/activation_attribute.h"

namespace rewire::kernel::cpu {

// out [rows, columns] = activation(x [rows, depth] by w, packed [depth, columns], + bias [columns] + addend
// [rows, columns]); bias and addend may be null, addend may be out.
struct RowsByPanels {
  const float* x;
  std::int64_t rows, depth;
  const float* w;
  std::int64_t columns;
  const float* bias;
  const float* addend;
  Activation activation;
  float* out;
};

// On the kernel's own thread only.
void MultiplyRows(const RowsByPanels& product);

}  // namespace rewire::kernel::cpu
