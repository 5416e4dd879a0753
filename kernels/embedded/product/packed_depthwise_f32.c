// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/embedded/internal.h"

void rewire_embedded_packed_depthwise_f32(const struct rewire_embedded_packed_depthwise* p, const float* x,
                                          const float* w, const float* bias, float* out) {
  for (int32_t image = 0; image < p->images; ++image) {
    for (int32_t oy = 0; oy < p->rows.output; ++oy) {
      for (int32_t ox = 0; ox < p->columns.output; ++ox) {
        struct rewire_embedded_covered covered;
        rewire_embedded_cover(&p->rows, &p->columns, p->in_channels, image, oy, ox, &covered);
        rewire_embedded_depthwise_f32(&covered, x, w, p->multiplier, bias, p->activation, out);
        out += p->in_channels * p->multiplier;
      }
    }
  }
}
