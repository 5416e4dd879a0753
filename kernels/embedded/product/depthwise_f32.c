// SPDX-License-Identifier: Apache-2.0
//
// The innermost loop of the f32 depthwise convolutions. Four channels at a time are summed in registers where
// each has one output channel.
#include "rewire/kernels/embedded/internal.h"

void rewire_embedded_depthwise_f32(const struct rewire_embedded_covered* covered, const float* x,
                                   const float* w, int32_t multiplier, const float* bias,
                                   const struct rewire_embedded_activation* activation, float* out) {
  const int32_t channels = covered->channels * multiplier;
  for (int32_t channel = 0; channel < channels;) {
    const int32_t four = multiplier == 1 && channels - channel >= 4;
    float s0 = 0, s1 = 0, s2 = 0, s3 = 0;
    if (bias != NULL) {
      s0 = bias[channel];
      if (four) {
        s1 = bias[channel + 1];
        s2 = bias[channel + 2];
        s3 = bias[channel + 3];
      }
    }
    const float* line = x + covered->at + (multiplier == 1 ? channel : channel / multiplier);
    const float* weights = w + covered->w_first * multiplier + channel;
    for (int32_t row = 0; row < covered->rows; ++row) {
      const float* a = line + row * covered->row_step;
      const float* b = weights + row * covered->w_row_step * multiplier;
      for (int32_t tap = covered->taps; tap > 0; --tap, a += covered->tap_step, b += channels) {
        s0 = REWIRE_EMBEDDED_MUL_ADD(b[0], a[0], s0);
        if (!four) continue;
        s1 = REWIRE_EMBEDDED_MUL_ADD(b[1], a[1], s1);
        s2 = REWIRE_EMBEDDED_MUL_ADD(b[2], a[2], s2);
        s3 = REWIRE_EMBEDDED_MUL_ADD(b[3], a[3], s3);
      }
    }
    out[channel++] = s0;
    if (!four) continue;
    out[channel++] = s1;
    out[channel++] = s2;
    out[channel++] = s3;
  }
  rewire_embedded_activate(activation, out, channels);
}
