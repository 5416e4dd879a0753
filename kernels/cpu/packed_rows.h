// SPDX-License-Identifier: Apache-2.0
// A matrix of rows in memory by packed weights, on the program's threads, and what is added to such products.
#pragma once

#include <cstdint>
#include <optional>

#include "kernels/cpu/activation_attribute.h"
#include "kernels/cpu/checks.h"
#include "kernels/cpu/shapes.h"

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

// On the program's threads where that is worth it; from the kernel's own thread only.
void MultiplyRows(const RowsByPanels& product);

// The columns of panels [first, last) alone, on the calling thread.
void MultiplyPanels(const RowsByPanels& product, std::int64_t first, std::int64_t last);

// What such products add, each absent or as it must be: bias [columns], addend as `out`, which it may be
// itself; both of `out`'s dtype, which messages call x's.
inline void CheckAdded(Checks& checks, const std::optional<TensorView>& bias,
                       const std::optional<TensorView>& addend, std::int64_t columns, TensorView out) {
  if (IsGiven(bias)) {
    checks.Dense("bias", *bias)
        .SameDType("bias", *bias, "x", out)
        .Shape("bias", *bias, ShapeView(&columns, 1));
    checks.NoOverlap("out", out, "bias", *bias);
  }
  if (IsGiven(addend)) {
    checks.Dense("addend", *addend)
        .SameDType("addend", *addend, "x", out)
        .Shape("addend", *addend, out.dims());
    if (addend->raw_data() != out.raw_data()) checks.NoOverlap("out", out, "addend", *addend);
  }
}

}  // namespace rewire::kernel::cpu
