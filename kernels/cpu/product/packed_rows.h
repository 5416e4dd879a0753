// SPDX-License-Identifier: Apache-2.0
//
// Multiplies a matrix of rows by packed weights, on the program's threads, and checks what is added to such
// products.
#pragma once

#include <cstdint>
#include <optional>

#include "rewire/kernels/cpu/elementwise/activation_attribute.h"
#include "rewire/kernels/cpu/shape/shapes.h"
#include "rewire/kernels/cpu/support/checks.h"
#include "rewire/kernels/cpu/support/pace.h"
#include "rewire/kernels/cpu/support/workspace_sizes.h"

namespace rewire::kernel::cpu {

// out [rows, columns] = activation(x [rows, depth] by w, packed [depth, columns], + bias [columns] + addend
// [rows, columns]); bias and addend may be null, addend may be out. x and w hold units (panels.h): floats, or
// with `pairs` pairs of bf16. depth counts units.
struct RowsByPanels {
  const float* x;
  std::int64_t rows, depth;
  const float* w;
  std::int64_t columns;
  const float* bias;
  const float* addend;
  Activation activation;
  float* out;
  bool pairs = false;
};

// Uses the program's threads if it is worth it. Call it only from the kernel's own thread.
[[nodiscard]] Status MultiplyRows(const RowsByPanels& product);

// The same for x of floats and w of pairs. `depth` counts floats. x is rounded to bf16 in workspace, which
// DeclareRoundedRows declares; the rows may be fewer then.
[[nodiscard]] Status MultiplyRoundedRows(const RowsByPanels& product);
void DeclareRoundedRows(WorkspaceSizes& sizes, std::int64_t rows, std::int64_t depth);

// Computes only the columns of panels [first, last), on the calling thread. Returns false if told to stop.
bool MultiplyPanels(const RowsByPanels& product, std::int64_t first, std::int64_t last, Pace& pace);

// Checks what such products add; each is absent or has the required form. bias is [columns]; addend has out's
// shape and may be out itself. Both have out's dtype, which messages call x's.
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
