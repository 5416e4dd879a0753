// SPDX-License-Identifier: Apache-2.0
// The attributes and the output shape of a convolution, for the kernels and their shape function.
#pragma once

#include "kernels/cpu/checks.h"
#include "kernels/cpu/window.h"

namespace rewire::kernel::cpu {

struct ConvAttributes {
  WindowAttributes window;
  std::int64_t groups = 1;

  Status Read(Attributes& attributes);
  // Checks x [N, C, ...] against w [M, C / groups, ...]; gives the window and out's shape.
  Status Resolve(ShapeView x, ShapeView w, Window* resolved, Dims* result) const;
};

}  // namespace rewire::kernel::cpu
