// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/embedded/internal.h"

void rewire_embedded_group_norm_f32(const struct rewire_embedded_group_norm* p, const float* x,
                                    const float* scale, const float* bias, float* out) {
  const int32_t count = p->group_channels * p->positions;
  for (int32_t i = 0; i < p->images * p->groups; ++i) {
    float center, factor;
    rewire_embedded_spread(x, count, p->epsilon, &center, &factor);
    for (int32_t c = 0; c < p->group_channels; ++c) {
      const int32_t channel = i % p->groups * p->group_channels + c;
      const float by = factor * scale[channel];
      for (int32_t j = p->positions; j > 0; --j)
        *out++ = REWIRE_EMBEDDED_MUL_ADD(*x++ - center, by, bias[channel]);
    }
  }
}
