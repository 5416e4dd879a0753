// SPDX-License-Identifier: Apache-2.0
// A call of rewire.packed.conv or rewire.packed.depthwise: its arguments, checked and resolved.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "rewire/kernels/cpu/convolution/packed_image.h"
#include "rewire/kernels/cpu/convolution/window.h"
#include "rewire/kernels/cpu/product/packed_rows.h"
#include "rewire/kernels/cpu/support/checks.h"
#include "rewire/kernels/cpu/support/types.h"

namespace rewire::kernel::cpu {

// The arguments that both kernels have in common, resolved.
struct ImageCall {
  Window window;
  std::int64_t images, in_channels, out_channels;
  const float *x, *w, *bias, *addend;
  float* out;
  std::uint16_t* rounded;       // in place of out, if that is bf16
  bool pairs;                   // w holds pairs of bf16
  bool x_rounded;               // and so does x
  std::int64_t first_line = 0;  // the line of the input that x begins with

  // An output line: a row of the output of one image.
  std::int64_t lines() const { return images * window.axes[0].output * window.axes[1].output; }
};

// An axis whose window does not move.
inline bool IsPoint(const WindowAxis& axis) {
  return axis.input == 1 && axis.output == 1 && axis.kernel == 1;
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

using DTypesCheck = Status (*)(TensorView x, TensorView w, TensorView out);

// `w` is left to the caller, except for its dtype.
[[nodiscard]] inline Status Resolve(const ImageAttributes& attributes, TensorView x, TensorView w,
                                    const std::optional<TensorView>& bias,
                                    const std::optional<TensorView>& addend, TensorView out,
                                    DTypesCheck check, ImageCall* call) {
  Checks checks;
  checks.Operands("x", x, "w", w, out);
  if (Status s = checks.Take(); !s.ok()) return s;
  if (Status s = check(x, w, out); !s.ok()) return s;
  call->pairs = w.Is<BFloat16>();
  call->x_rounded = x.Is<BFloat16>();
  if (Status s = attributes.Resolve(x, out, &call->window); !s.ok()) return s;
  if (Status s = CheckAdded(bias, addend, attributes.channels, out); !s.ok()) return s;
  call->images = x.dim(0);
  call->in_channels = x.dim(x.ndim() - 1);
  call->out_channels = attributes.channels;
  call->x = static_cast<const float*>(x.raw_data());
  call->w = static_cast<const float*>(w.raw_data());
  call->bias = IsGiven(bias) ? bias->data<float>() : nullptr;
  call->addend = IsGiven(addend) ? addend->data<float>() : nullptr;
  MakeLinesLong(&call->window);
  call->out = static_cast<float*>(out.raw_data());
  call->rounded = out.Is<BFloat16>() ? static_cast<std::uint16_t*>(out.raw_data()) : nullptr;
  return Status();
}

}  // namespace rewire::kernel::cpu
