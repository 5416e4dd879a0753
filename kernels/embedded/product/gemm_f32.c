// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/embedded/internal.h"

void rewire_embedded_gemm_f32(const struct rewire_embedded_gemm* p, const float* a, const float* b,
                              const float* c, float* out) {
  for (int32_t i = 0; i < p->m; ++i) {
    for (int32_t j = 0; j < p->n; ++j) {
      float sum = 0;
      for (int32_t k = 0; k < p->k; ++k)
        sum = REWIRE_EMBEDDED_MUL_ADD(a[i * p->a_row + k * p->a_column], b[k * p->b_row + j * p->b_column],
                                      sum);
      sum *= p->alpha;
      if (c != NULL) sum += rewire_embedded_rounded_product(p->beta, c[i * p->c_row + j * p->c_column]);
      *out++ = sum;
    }
  }
}
