// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/embedded/functions.h"

void rewire_embedded_softmax_f32(const struct rewire_embedded_along* p, const float* x, float* out) {
  const int32_t size = p->count * p->inner;
  for (int32_t i = p->outer; i > 0; --i, x += size - p->inner, out += size - p->inner) {
    for (int32_t column = p->inner; column > 0; --column, ++x, ++out) {
      float most = -INFINITY, sum = 0;
      for (int32_t j = 0; j < size; j += p->inner) {
        if (x[j] > most || x[j] != x[j]) most = x[j];
      }
      for (int32_t j = 0; j < size; j += p->inner) sum += out[j] = rewire_embedded_exp_up_to_0(x[j] - most);
      const float factor = 1 / sum;
      for (int32_t j = 0; j < size; j += p->inner) out[j] *= factor;
    }
  }
}
