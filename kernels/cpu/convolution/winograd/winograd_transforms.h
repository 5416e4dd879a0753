// SPDX-License-Identifier: Apache-2.0
//
// The transforms of Winograd's convolution F(4x4, 3x3): A. Lavin and S. Gray, "Fast Algorithms for
// Convolutional Neural Networks", 2015, section 4.3. A tile of 6 x 6 inputs gives 4 x 4 outputs by one
// product for each of its 36 points, where the direct form needs 144. The
// interpolation points are 0, infinity, and half of the square root of 2 and its double, both of either sign.
// With 1 and 2 in their place, as in the paper, errors are four times as large.
#pragma once

#include <cstdint>

#include "rewire/kernels/cpu/elementwise/activation_attribute.h"

namespace rewire::kernel::cpu {

inline constexpr std::int64_t kWinogradOutputs = 4;  // along an axis
inline constexpr std::int64_t kWinogradInputs = 6;
inline constexpr std::int64_t kWinogradPoints = kWinogradInputs * kWinogradInputs;

// One tile of inputs, all channels: to[point * step + channel].
struct WinogradInput {
  const float* from[kWinogradPoints];  // the channels at each position of the tile, row by row
  std::int64_t channels;
  float* to;
  std::int64_t step;
};

// One tile of outputs: `rows` by `columns` of them, at most 4 by 4, lie inside the image.
// out(i, j, channel) = activation(value + bias[channel] + addend(i, j, channel)).
struct WinogradOutput {
  const float* from;  // from[point * step + channel]
  std::int64_t step;
  std::int64_t channels;
  const float* bias;    // [channels]; null: zeros
  const float* addend;  // as out; null: zeros
  float* out;           // the channels of the first output
  std::int64_t row_step, column_step;
  std::int64_t rows, columns;
  Activation activation;
};

struct WinogradTransforms {
  void (*input)(const WinogradInput& tile);
  void (*output)(const WinogradOutput& tile);
};

// The transforms of the best instruction set that this CPU and the build support.
WinogradTransforms ChooseWinogradTransforms();

// The same, chosen once per process.
const WinogradTransforms& BestWinogradTransforms();

}  // namespace rewire::kernel::cpu
