// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/embedded/internal.h"

void rewire_embedded_rms_norm_f32(const struct rewire_embedded_row_norm* p, const float* x,
                                  const float* scale, float* out) {
  for (int32_t i = 0; i < p->rows; ++i, x += p->count, out += p->count) {
    float squares = 0;
    for (int32_t j = 0; j < p->count; ++j) squares = REWIRE_EMBEDDED_MUL_ADD(x[j], x[j], squares);
    const float factor = 1 / sqrtf(squares / (float)p->count + p->epsilon);
    for (int32_t j = 0; j < p->count; ++j) out[j] = x[j] * factor * scale[j];
  }
}
