// SPDX-License-Identifier: Apache-2.0
//
// Multiplies a matrix of rows by packed weights, on the program's threads, and checks what is added to such
// products.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "rewire/kernels/cpu/elementwise/activation_attribute.h"
#include "rewire/kernels/cpu/product/panels/addend.h"
#include "rewire/kernels/cpu/product/panels/panels.h"
#include "rewire/kernels/cpu/shape/shapes.h"
#include "rewire/kernels/cpu/support/checks.h"
#include "rewire/kernels/cpu/support/pace.h"
#include "rewire/kernels/cpu/support/types.h"
#include "rewire/kernels/cpu/support/workspace_sizes.h"

namespace rewire::kernel::cpu {

// out [rows, columns] = activation(x [rows, depth] by w, packed [depth, columns], + bias [columns] + addend
// [rows, columns]); bias may be null, addend may be out. x and w hold units (panels.h): floats, or pairs of
// bf16. For x of floats, w may hold f16. depth counts units.
struct RowsByPanels {
  const float* x;
  std::int64_t rows, depth;
  const float* w;
  std::int64_t columns;
  const float* bias;
  Addend addend;
  Activation activation;
  float* out;
  PanelUnit unit = PanelUnit::kFloat;
  std::uint16_t* rounded = nullptr;  // takes the place of out: the same rounded to bf16
};

// Uses the program's threads if it is worth it. Call it only from the kernel's own thread.
[[nodiscard]] Status MultiplyRows(const RowsByPanels& product);

// The same for x of floats and w of pairs. `depth` counts floats. x is rounded to bf16 in workspace, which
// DeclareRoundedRows declares; the rows may be fewer then.
[[nodiscard]] Status MultiplyRoundedRows(const RowsByPanels& product);
void DeclareRoundedRows(WorkspaceSizes& sizes, std::int64_t rows, std::int64_t depth);

// The same for x of pairs, in workspace that DeclarePairRows declares. `depth` counts units.
[[nodiscard]] Status MultiplyPairRows(const RowsByPanels& product);
void DeclarePairRows(WorkspaceSizes& sizes, std::int64_t rows, std::int64_t depth);

// Computes only the columns of panels [first, last), on the calling thread. Returns false if told to stop.
bool MultiplyPanels(const RowsByPanels& product, std::int64_t first, std::int64_t last, Pace& pace);

// Checks what such products add; each is absent or has the required form. bias is [columns]; addend has out's
// shape and may be out itself. Both are f32; with `bf16_too` the addend may be bf16.
[[nodiscard]] inline Status CheckAdded(const std::optional<TensorView>& bias,
                                       const std::optional<TensorView>& addend, std::int64_t columns,
                                       TensorView out, bool bf16_too = false) {
  Checks checks;
  if (IsGiven(bias)) {
    if (!bias->Is<float>()) return WrongDType(Types<float>(), "bias", *bias);
    checks.Dense("bias", *bias).Shape("bias", *bias, ShapeView(&columns, 1));
    checks.NoOverlap("out", out, "bias", *bias);
  }
  if (IsGiven(addend)) {
    if (!addend->Is<float>() && !bf16_too) return WrongDType(Types<float>(), "addend", *addend);
    if (!addend->Is<float>() && !addend->Is<BFloat16>())
      return WrongDType(Types<float, BFloat16>(), "addend", *addend);
    checks.Dense("addend", *addend).Shape("addend", *addend, out.dims());
    const bool in_place =
        addend->raw_data() == out.raw_data() && addend->element_bytes() == out.element_bytes();
    if (!in_place) checks.NoOverlap("out", out, "addend", *addend);
  }
  return checks.Take();
}

// The addend that is so given, and checked.
inline Addend AddendOf(const std::optional<TensorView>& addend) {
  if (!IsGiven(addend)) return {};
  if (addend->Is<float>()) return addend->data<float>();
  return Addend(static_cast<const std::uint16_t*>(addend->raw_data()));
}

// Checks the dtypes of such products: w is f32, bf16 or f16; x is f32, or with w bf16 [..., an even number];
// out is f32 or bf16.
[[nodiscard]] inline Status CheckDTypes(TensorView x, TensorView w, TensorView out) {
  using Both = Types<float, BFloat16>;
  for (const auto& [what, tensor] : {std::pair("x", x), std::pair("out", out)}) {
    if (!tensor.Is<float>() && !tensor.Is<BFloat16>()) return WrongDType(Both(), what, tensor);
  }
  if (!w.Is<float>() && !w.Is<BFloat16>() && !w.Is<Float16>())
    return WrongDType(Types<float, BFloat16, Float16>(), "w", w);
  if (x.Is<BFloat16>() && !w.Is<BFloat16>()) return TypeError("x has dtype bf16, expected f32");
  if (x.Is<BFloat16>() && (x.ndim() < 1 || x.dim(x.ndim() - 1) % 2 != 0))
    return ValueError("x has shape ", x.dims(), ", expected pairs of bf16 along the last axis");
  return Status();
}

}  // namespace rewire::kernel::cpu
