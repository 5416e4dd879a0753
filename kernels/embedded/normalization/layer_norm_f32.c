// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/embedded/internal.h"

void rewire_embedded_layer_norm_f32(const struct rewire_embedded_row_norm* p, const float* x,
                                    const float* scale, const float* bias, float* out, float* means,
                                    float* factors) {
  for (int32_t i = 0; i < p->rows; ++i, x += p->count, out += p->count) {
    float center, factor;
    rewire_embedded_spread(x, p->count, p->epsilon, &center, &factor);
    for (int32_t j = 0; j < p->count; ++j) {
      const float normal = (x[j] - center) * factor;
      out[j] = bias == NULL ? normal * scale[j] : REWIRE_EMBEDDED_MUL_ADD(normal, scale[j], bias[j]);
    }
    if (means != NULL) means[i] = center;
    if (factors != NULL) factors[i] = factor;
  }
}
