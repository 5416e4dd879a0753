// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/embedded/internal.h"

void rewire_embedded_multiply_packed(const float* x, const float* w, int32_t depth, int32_t columns,
                                     const float* bias, float* out) {
  const struct rewire_embedded_covered row = {0, 1, 0, 1, depth, depth, 0, 0};
  rewire_embedded_panels_f32(&row, x, w, depth, columns, bias, NULL, NULL, out);
}
