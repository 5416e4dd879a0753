// SPDX-License-Identifier: Apache-2.0
//
// Products of positions by so few columns that vectors hold positions and not columns: what transposed
// convolutions with one or two output channels compute.
#pragma once

#include <cstdint>

#include "rewire/kernels/cpu/elementwise/activation_attribute.h"

namespace rewire::kernel::cpu {

// The most columns of a row.
inline constexpr std::int64_t kMostFewColumns = 4;

// Each position gives `columns` outputs in each of `rows` rows of outputs:
//
//   out[r * row_step + i * columns + j] = activation(bias[j] + sum over c of x[i * channels + c] * w(r, c,
//   j))
//
// Row r has the panel (panels.h) of kHalfPanel columns at w[r * channels * kHalfPanel].
struct FewColumns {
  const float* x;
  std::int64_t positions, channels;
  const float* w;
  const float* bias;  // [columns]
  std::int64_t rows, columns;
  float* out;
  std::int64_t row_step;
  Activation activation;
};

using FewColumnsFunction = void (*)(const FewColumns& product);

// The function of the best instruction set that this CPU and the build support.
FewColumnsFunction ChooseFewColumns();

// The same, chosen once per process.
FewColumnsFunction BestFewColumns();

}  // namespace rewire::kernel::cpu
