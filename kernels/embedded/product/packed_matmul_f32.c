// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/embedded/internal.h"

void rewire_embedded_packed_matmul_f32(const struct rewire_embedded_packed_matmul* p, const float* x,
                                       const float* w, const float* bias, const float* addend, float* out) {
  struct rewire_embedded_covered row = {0, 1, 0, 1, p->depth, p->depth, 0, 0};
  for (int32_t i = 0; i < p->rows; ++i) {
    row.at = i * p->depth;
    const int32_t at = i * p->columns;
    rewire_embedded_panels_f32(&row, x, w, p->depth, p->columns, bias, addend == NULL ? NULL : addend + at,
                               p->activation, out + at);
  }
}
