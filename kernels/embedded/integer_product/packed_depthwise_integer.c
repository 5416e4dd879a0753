// SPDX-License-Identifier: Apache-2.0
//
// Byte (k, j) of the weights is at ((k / 4) * width + j) * 4 + k % 4 of its panel, as in integer_panels.c.
// k counts the rows of the window at each position of a row, which is a segment of its own; the positions of
// a window of one row are one segment.
#include "rewire/kernels/embedded/internal.h"

#define PANEL 32
#define HALF_PANEL 16

void rewire_embedded_packed_depthwise_integer_bytes(const struct rewire_embedded_packed_conv_integer* p,
                                                    const void* x, const int8_t* w, const void* x_zero,
                                                    const int8_t* w_zero, const float* scale,
                                                    const int32_t* whole_bias, const float* bias, void* out) {
  const int32_t channels = p->in_channels, line = p->columns.input * channels;
  const int32_t one_row = p->rows.kernel == 1;
  const int32_t segment = one_row ? 1 : (p->rows.kernel + 3) & ~3;
  const int32_t depth = (p->columns.kernel * segment + 3) & ~3;
  const int32_t flip = p->finish.x_is_signed ? 0x80 : 0;
  const int32_t zero = rewire_embedded_zero_of(p->finish.x_is_signed, x_zero);
  const uint8_t* image = (const uint8_t*)x;
  int32_t at = 0;
  for (int32_t i = 0; i < p->images; ++i, image += p->rows.input * line) {
    for (int32_t oy = 0; oy < p->rows.output; ++oy) {
      int32_t y0, y1;
      rewire_embedded_inside(&p->rows, oy, &y0, &y1);
      const int32_t first_y = oy * p->rows.stride - p->rows.before;
      for (int32_t ox = 0; ox < p->columns.output; ++ox, at += channels) {
        int32_t x0, x1;
        rewire_embedded_inside(&p->columns, ox, &x0, &x1);
        const int32_t first_x = ox * p->columns.stride - p->columns.before;
        for (int32_t c = 0; c < channels; ++c) {
          const int32_t panel = c & ~(PANEL - 1);
          const int32_t width = channels - panel <= HALF_PANEL ? HALF_PANEL : PANEL;
          const int8_t* weights = w + panel * depth + (c - panel) * 4;
          const int32_t less = w_zero == NULL ? 0 : w_zero[c * p->finish.w_zero_step];
          uint32_t sum = whole_bias == NULL ? 0 : (uint32_t)whole_bias[c];
          for (int32_t ky = y0; ky < y1; ++ky) {
            const int32_t from = (first_y + ky * p->rows.dilation) * line + c;
            for (int32_t kx = x0; kx < x1; ++kx) {
              const int32_t k = kx * segment + ky;
              const int32_t byte = image[from + (first_x + kx * p->columns.dilation) * channels] ^ flip;
              sum += (uint32_t)((byte - zero) * (weights[(k >> 2) * width * 4 + (k & 3)] - less));
            }
          }
          const int32_t whole = (int32_t)sum;
          p->finish.store(&p->finish, &whole, c, 1, scale, bias, out, at + c);
        }
      }
    }
  }
}
