// SPDX-License-Identifier: Apache-2.0
// The simulated libraries pass these to their kernels by value.
#pragma once

namespace rewire::simulated_libraries {

// d = epilogue(alpha * op(a) op(b) + beta * c), in columns, for each batch.
struct MatmulParameters {
  int half, m, n, k, batch;
  int a_transposed, b_transposed;
  int a_leading, b_leading, c_leading, d_leading;
  int a_step, b_step, c_step, d_step;
  int epilogue;
  float alpha, beta;
};

// Up to three spatial axes; those that are missing come first and have size 1.
struct ConvolutionParameters {
  int half, groups, images, channels, outputs;  // channels of one group, outputs of all
  int x[3], w[3], y[3], pads[3], strides[3], dilations[3];
  float alpha, beta;
};

}  // namespace rewire::simulated_libraries
