// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/embedded/internal.h"

void rewire_embedded_conv_f32(const struct rewire_embedded_conv* p, const float* x, const float* w,
                              const float* bias, float* out) {
  const int32_t in = p->in_channels / p->groups, of_group = p->out_channels / p->groups;
  const int32_t taps = p->rows.kernel * p->columns.kernel;
  for (int32_t image = 0; image < p->images; ++image) {
    for (int32_t channel = 0; channel < p->out_channels; ++channel) {
      const int32_t plane = image * p->in_channels + channel / of_group * in;
      for (int32_t oy = 0; oy < p->rows.output; ++oy) {
        for (int32_t ox = 0; ox < p->columns.output; ++ox) {
          float sum = bias == NULL ? 0 : bias[channel];
          for (int32_t c = 0; c < in; ++c) {
            struct rewire_embedded_covered covered;
            rewire_embedded_cover(&p->rows, &p->columns, 1, plane + c, oy, ox, &covered);
            const float* weights = w + (channel * in + c) * taps + covered.w_first;
            for (int32_t row = 0; row < covered.rows; ++row) {
              const float* a = x + covered.at + row * covered.row_step;
              const float* b = weights + row * covered.w_row_step;
              for (int32_t tap = 0; tap < covered.taps; ++tap)
                sum = REWIRE_EMBEDDED_MUL_ADD(a[tap * covered.tap_step], b[tap], sum);
            }
          }
          *out++ = sum;
        }
      }
    }
  }
}
