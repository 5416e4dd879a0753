// SPDX-License-Identifier: Apache-2.0
//
// One row of a depthwise convolution (each channel has its own weights), channels last: the innermost loop of
// rewire.packed.depthwise.
#pragma once

#include <cstdint>
#include <limits>

#include "rewire/kernels/cpu/elementwise/activation_attribute.h"

namespace rewire::kernel::cpu {

// out[o * channels + c] = activation(bias[c] + sum over r, t of rows[r][(start + o * stride + t * dilation) *
// channels + c] * weights[r][t * channels + c]), for o < count, c < channels. What lies outside of a row's
// pixels counts as zeros.
struct DepthwiseRow {
  std::int64_t channels;
  std::int64_t count;  // output positions
  std::int64_t stride, dilation;
  std::int64_t taps;         // in a row of the window
  std::int64_t row_count;    // rows of the window that lie inside the image
  const float* const* rows;  // their first pixels
  const float* const* weights;
  const float* bias;  // null: zeros
  float* out;
  Activation activation;
  std::uint16_t* rounded = nullptr;  // takes the place of out: the same rounded to bf16
  std::int64_t start = 0;            // the pixel of tap 0 of output position 0
  std::int64_t pixels = std::numeric_limits<std::int64_t>::max();  // of a row

  std::int64_t FirstPixel(std::int64_t position) const { return start + position * stride; }
  // Whether the windows of `positions` positions from `position` on lie inside.
  bool AreInside(std::int64_t position, std::int64_t positions) const {
    return FirstPixel(position) >= 0 && FirstPixel(position + positions - 1) + (taps - 1) * dilation < pixels;
  }
};

using DepthwiseKernel = void (*)(const DepthwiseRow& row);

// The kernel of the best instruction set that this CPU and the build support.
DepthwiseKernel ChooseDepthwiseKernel();

// The same, chosen once per process.
DepthwiseKernel BestDepthwiseKernel();

// to[i * times + t] = x[i], for t < times: an image whose channels each make as many outputs.
void RepeatEach(const float* x, std::int64_t count, std::int64_t times, float* to);

}  // namespace rewire::kernel::cpu
