// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/embedded/internal.h"

void rewire_embedded_batch_norm_f32(const struct rewire_embedded_batch_norm* p, const float* x,
                                    const float* scale, const float* bias, const float* mean,
                                    const float* variance, float* out) {
  for (int32_t i = 0; i < p->view.outer; ++i) {
    for (int32_t c = 0; c < p->view.count; ++c) {
      const float factor = scale[c] / sqrtf(variance[c] + p->epsilon);
      for (int32_t j = p->view.inner; j > 0; --j)
        *out++ = REWIRE_EMBEDDED_MUL_ADD(*x++ - mean[c], factor, bias[c]);
    }
  }
}
