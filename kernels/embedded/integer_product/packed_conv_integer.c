// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/embedded/internal.h"

// The window at one output position, in segments of w: a row of it, or a position where these are apart.
// The border is zero.
static void gather(const struct rewire_embedded_packed_conv_integer* p, const uint8_t* image, int32_t zero,
                   int32_t oy, int32_t ox, int32_t depth, int16_t* window) {
  const int32_t flip = p->finish.x_is_signed ? 0x80 : 0;
  int16_t* to = window;
  memset(window, 0, (size_t)depth * sizeof(int16_t));
  for (int32_t ky = 0; ky < p->rows.kernel; ++ky) {
    const int32_t y = oy * p->rows.stride - p->rows.before + ky * p->rows.dilation;
    for (int32_t kx = 0; kx < p->columns.kernel; ++kx, to += p->in_channels) {
      const int32_t x = ox * p->columns.stride - p->columns.before + kx * p->columns.dilation;
      if (p->columns.dilation != 1 || kx == 0) to = window + ((to - window + 3) & ~3);
      // As unsigned numbers, negative positions are large.
      if ((uint32_t)y >= (uint32_t)p->rows.input || (uint32_t)x >= (uint32_t)p->columns.input) continue;
      const uint8_t* from = image + (y * p->columns.input + x) * p->in_channels;
      for (int32_t c = 0; c < p->in_channels; ++c) to[c] = (int16_t)((from[c] ^ flip) - zero);
    }
  }
}

void rewire_embedded_packed_conv_integer_bytes(const struct rewire_embedded_packed_conv_integer* p,
                                               const void* x, const int8_t* w, const void* x_zero,
                                               const int8_t* w_zero, const float* scale,
                                               const int32_t* whole_bias, const float* bias, void* workspace,
                                               void* out) {
  const int32_t apart = p->columns.dilation != 1;
  const int32_t segments = p->rows.kernel * (apart ? p->columns.kernel : 1);
  const int32_t length = p->in_channels * (apart ? 1 : p->columns.kernel);
  const struct rewire_embedded_integer_product product = {
      &p->finish, w, w_zero, scale, whole_bias, bias, segments * ((length + 3) & ~3), p->out_channels};
  const int32_t zero = rewire_embedded_zero_of(p->finish.x_is_signed, x_zero);
  const uint8_t* image = (const uint8_t*)x;
  int16_t* const window = (int16_t*)workspace;
  int32_t at = 0;
  for (int32_t i = 0; i < p->images; ++i, image += p->rows.input * p->columns.input * p->in_channels) {
    for (int32_t oy = 0; oy < p->rows.output; ++oy) {
      for (int32_t ox = 0; ox < p->columns.output; ++ox, at += p->out_channels) {
        gather(p, image, zero, oy, ox, product.depth, window);
        rewire_embedded_integer_panels(&product, window, out, at);
      }
    }
  }
}
