// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/embedded/functions.h"
#include "rewire/kernels/embedded/reduction/reduce.h"

// Shifted by the largest element, so that powers do not overflow. An infinite one would make infinity less
// infinity.
REWIRE_EMBEDDED_REDUCTION(log_sum_exp) {
  int32_t kept = 1, count = 1;
  for (int32_t i = 0; i < p->kept_rank; ++i) kept *= p->kept[i];
  for (int32_t i = 0; i < p->reduced_rank; ++i) count *= p->reduced[i];
  rewire_embedded_reduce_max_f32(p, x, out);
  for (int32_t i = 0; i < kept; ++i) {
    const float* from = x + rewire_embedded_reduce_offset(p->kept_rank, p->kept, p->kept_steps, i);
    const float shift = fabsf(out[i]) == INFINITY ? 0 : out[i];
    float sum = 0;
    for (int32_t j = 0; j < count; ++j) {
      const int32_t at = rewire_embedded_reduce_offset(p->reduced_rank, p->reduced, p->reduced_steps, j);
      sum += rewire_embedded_exp(from[at] - shift);
    }
    out[i] = shift + logf(sum);
  }
}
