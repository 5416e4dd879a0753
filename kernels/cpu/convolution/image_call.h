// SPDX-License-Identifier: Apache-2.0
//
// The arguments of a convolution of images with the channels last, resolved.
#pragma once

#include <cstdint>
#include <optional>

#include "rewire/kernels/cpu/convolution/packed_image.h"
#include "rewire/kernels/cpu/convolution/window.h"
#include "rewire/kernels/cpu/product/panels/addend.h"
#include "rewire/kernels/cpu/product/panels/panels.h"

namespace rewire::kernel::cpu {

struct ImageCall {
  Window window;
  std::int64_t images, in_channels, out_channels;
  const float *x, *w, *bias;
  Addend addend;
  float* out;
  std::uint16_t* rounded;       // in place of out, if that is bf16
  PanelUnit unit;               // of w
  bool x_rounded;               // x holds pairs, as w does
  std::int64_t first_line = 0;  // the line of the input that x begins with

  bool pairs() const { return unit == PanelUnit::kPair; }
  // An output line: a row of the output of one image.
  std::int64_t lines() const { return images * window.axes[0].output * window.axes[1].output; }
};

// The attributes of such kernels, as they are described.
inline constexpr const char* kImageAttributes =
    "channels, kernel_shape, strides = ones, dilations = ones, pads = zeros, auto_pad = NOTSET, "
    "SAME_UPPER, "
    "SAME_LOWER or VALID; activation, alpha, beta, post_scale, post_shift as rewire.packed.matmul";

// Checks the arguments of a call. `w` is left to the caller, except for its dtype.
[[nodiscard]] Status ResolveImageCall(const ImageAttributes& attributes, TensorView x, TensorView w,
                                      const std::optional<TensorView>& bias,
                                      const std::optional<TensorView>& addend, TensorView out,
                                      ImageCall* call);

// An axis whose window does not move, and lies on the image.
inline bool IsPoint(const WindowAxis& axis) {
  return axis.input == 1 && axis.output == 1 && axis.kernel == 1 && axis.before == 0;
}

// Axes of size 1 go to the front, so that lines are long.
inline void MakeLinesLong(Window* window) {
  auto& [depth, rows, columns] = window->axes;
  for (int i = 0; i < kMaxSpatial && IsPoint(columns); ++i) {
    columns = rows;
    rows = depth;
    depth = WindowAxis();
  }
}

}  // namespace rewire::kernel::cpu
