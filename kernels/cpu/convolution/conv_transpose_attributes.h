// SPDX-License-Identifier: Apache-2.0
//
// The attributes and the output shape of a transposed convolution, for its kernels and its shape function.
#pragma once

#include <cstdint>
#include <vector>

#include "rewire/kernels/cpu/convolution/window.h"
#include "rewire/kernels/cpu/support/checks.h"

namespace rewire::kernel::cpu {

struct ConvTransposeAttributes {
  WindowAttributes window;
  std::int64_t groups = 1;
  std::vector<std::int64_t> output_padding, output_shape;

  Status Read(Attributes& attributes);
  // The window of the convolution that goes the other way: from out, its input, to x, its output. x [N, C,
  // ...], w [C, M / groups, ...].
  Status Resolve(ShapeView x, ShapeView w, Window* resolved, Dims* result) const;

 private:
  // Sets the axis' input (the size of out) and pads.
  Status Extend(std::size_t i, WindowAxis* axis) const;
};

}  // namespace rewire::kernel::cpu
