// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/embedded/internal.h"

void rewire_embedded_packed_conv_f32(const struct rewire_embedded_packed_conv* p, const float* x,
                                     const float* w, const float* bias, const float* addend, float* out) {
  const int32_t depth = p->rows.kernel * p->columns.kernel * p->in_channels;
  for (int32_t image = 0; image < p->images; ++image) {
    for (int32_t oy = 0; oy < p->rows.output; ++oy) {
      for (int32_t ox = 0; ox < p->columns.output; ++ox) {
        struct rewire_embedded_covered covered;
        rewire_embedded_cover(&p->rows, &p->columns, p->in_channels, image, oy, ox, &covered);
        rewire_embedded_panels_f32(&covered, x, w, depth, p->out_channels, bias, addend, p->activation, out);
        out += p->out_channels;
        if (addend != NULL) addend += p->out_channels;
      }
    }
  }
}
