// SPDX-License-Identifier: Apache-2.0
//
// The attributes and the output shape of a convolution, for its kernels and shape function, and the checks
// that it shares with the transposed convolution.
#pragma once

#include <optional>

#include "rewire/kernels/cpu/convolution/window.h"
#include "rewire/kernels/cpu/shape/shapes.h"
#include "rewire/kernels/cpu/support/checks.h"

namespace rewire::kernel::cpu {

struct ConvAttributes {
  WindowAttributes window;
  std::int64_t groups = 1;

  Status Read(Attributes& attributes);
  // Checks x [N, C, ...] against w [M, C / groups, ...]. Returns the window and out's shape.
  Status Resolve(ShapeView x, ShapeView w, Window* resolved, Dims* result) const;
};

// The checks of x, w, bias [channels of out] and out that both directions share. Returns the window.
// `attributes` resolves shapes as ConvAttributes does.
template <typename Resolver>
Status CheckConvArguments(const Resolver& attributes, TensorView x, TensorView w,
                          const std::optional<TensorView>& bias, TensorView out, Window* window) {
  Checks checks;
  checks.Operands("x", x, "w", w, out).SameDType("w", w, "x", x).SameDType("out", out, "x", x);
  if (Status s = checks.Take(); !s.ok()) return s;
  Dims expected;
  if (Status s = attributes.Resolve(x.dims(), w.dims(), window, &expected); !s.ok()) return s;
  if (Status s = CheckShape("out", out, expected.view()); !s.ok() || !bias) return s;
  const std::int64_t channels = out.dim(1);
  checks.Dense("bias", *bias).SameDType("bias", *bias, "x", x).Shape("bias", *bias, ShapeView(&channels, 1));
  return checks.NoOverlap("out", out, "bias", *bias).Take();
}

// Computes a convolution's shape function from the shapes of x and w.
template <typename Resolver>
Status WriteConvShape(const Resolver& attributes, TensorView x, TensorView w, TensorView out) {
  Dims input, weights, result;
  if (Status s = ReadShape("x", x, &input); !s.ok()) return s;
  if (Status s = ReadShape("w", w, &weights); !s.ok()) return s;
  Window window;
  if (Status s = attributes.Resolve(input.view(), weights.view(), &window, &result); !s.ok()) return s;
  return WriteShape(result, out);
}

}  // namespace rewire::kernel::cpu
