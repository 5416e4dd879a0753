// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/embedded/internal.h"

void rewire_embedded_multiply_rows(const float* x, const float* w, int32_t depth, int32_t columns,
                                   const float* bias, float* out) {
  for (int32_t j = 0; j < columns; ++j) {
    float sum = bias == NULL ? 0 : bias[j];
    for (int32_t k = 0; k < depth; ++k) sum = REWIRE_EMBEDDED_MUL_ADD(x[k], *w++, sum);
    out[j] = sum;
  }
}
