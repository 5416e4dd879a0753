// SPDX-License-Identifier: Apache-2.0
//
// Products of float matrices that are both computed, by the kernel for packed weights (panels.h). A task
// packs one panel of the right matrix on its stack and multiplies many rows by it, so no workspace is needed.
#pragma once

#include <cstdint>

#include "rewire/kernels/cpu/product/gemm.h"
#include "rewire/kernels/cpu/support/layout.h"
#include "rewire/vm/kernel/status.h"

namespace rewire::kernel::cpu {

// c(i, j) = sum over k of a(i, k) * b(k, j), for i < rows, j < columns, k < depth; all are at least 1. With
// `add` the sum is added to what c holds. The rows of a lie in one piece each: a.column is 1.
struct PanelProduct {
  std::int64_t rows, columns, depth;
  Matrix<float> a, b;
  float* c;
  std::int64_t c_row;
  bool add;
};

// Multiplies for each element of the loop `batches`, whose strides say where c, a and b lie, in this order.
// Uses the program's threads if it is worth it. Call it only from the kernel's own thread.
[[nodiscard]] Status MultiplyByPanels(const PanelProduct& product, const Layout<3>& batches);

}  // namespace rewire::kernel::cpu
