// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/embedded/internal.h"

void rewire_embedded_packed_separable_f32(const struct rewire_embedded_packed_separable* p, const float* x,
                                          const float* taps, const float* taps_bias, const float* w,
                                          const float* bias, const float* addend, float* workspace,
                                          float* out) {
  const struct rewire_embedded_covered row = {0, 1, 0, 1, p->in_channels, p->in_channels, 0, 0};
  for (int32_t image = 0; image < p->images; ++image) {
    for (int32_t oy = 0; oy < p->rows.output; ++oy) {
      for (int32_t ox = 0; ox < p->columns.output; ++ox) {
        struct rewire_embedded_covered covered;
        rewire_embedded_cover(&p->rows, &p->columns, p->in_channels, image, oy, ox, &covered);
        rewire_embedded_depthwise_f32(&covered, x, taps, 1, taps_bias, p->depthwise_activation, workspace);
        rewire_embedded_panels_f32(&row, workspace, w, p->in_channels, p->out_channels, bias, addend,
                                   p->activation, out);
        out += p->out_channels;
        if (addend != NULL) addend += p->out_channels;
      }
    }
  }
}
