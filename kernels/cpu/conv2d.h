// SPDX-License-Identifier: Apache-2.0
// The attributes and the output shape of a convolution, for the kernel and its shape function.
#pragma once

#include "kernels/cpu/checks.h"
#include "kernels/cpu/window.h"

namespace rewire::kernel::cpu {

struct Conv2dAttributes {
  WindowAttributes window;
  std::int64_t groups = 1;

  Status Read(Attributes& attributes);
  // Checks x [N, C, H, W] against w [M, C / groups, KH, KW]; gives the window's axes and out's shape.
  Status Resolve(ShapeView x, ShapeView w, WindowAxis (&axes)[2], Dims* result) const;
};

}  // namespace rewire::kernel::cpu
