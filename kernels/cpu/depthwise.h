// SPDX-License-Identifier: Apache-2.0
// One row of a convolution of each channel with weights of its own, channels last: the innermost loop of
// rewire.packed.depthwise.
#pragma once

#include <cstdint>

#include "kernels/cpu/activation_attribute.h"

namespace rewire::kernel::cpu {

// out[o * channels + c] = activation(bias[c] + sum over r, t of rows[r][(o * stride + t * dilation) *
// channels
// + c] * weights[r][t * channels + c]), for o < count, c < channels.
struct DepthwiseRow {
  std::int64_t channels;
  std::int64_t count;  // output positions
  std::int64_t stride, dilation;
  std::int64_t taps;         // in a row of the window
  std::int64_t row_count;    // rows of the window that lie in the image
  const float* const* rows;  // where output position 0 meets tap 0
  const float* const* weights;
  const float* bias;  // null: zeros
  float* out;
  Activation activation;
};

using DepthwiseKernel = void (*)(const DepthwiseRow& row);

// That of the best instruction set which this CPU and the build have.
DepthwiseKernel ChooseDepthwiseKernel();

// The same, chosen once per process.
DepthwiseKernel BestDepthwiseKernel();

}  // namespace rewire::kernel::cpu
