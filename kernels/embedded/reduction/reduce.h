// SPDX-License-Identifier: Apache-2.0
//
// The walk over kept and reduced axes that all reductions share. A step sees the value and the result so far.
#ifndef REWIRE_EMBEDDED_REDUCE_H_
#define REWIRE_EMBEDDED_REDUCE_H_

#include "rewire/kernels/embedded/internal.h"

// Element `number`, row-major, of axes with these sizes and steps.
int32_t rewire_embedded_reduce_offset(int32_t rank, const int32_t* sizes, const int32_t* steps,
                                      int32_t number);

#define REWIRE_EMBEDDED_REDUCE(name, first, STEP, FINISH)                                             \
  REWIRE_EMBEDDED_REDUCTION(name) {                                                                   \
    int32_t kept = 1, count = 1;                                                                      \
    for (int32_t i = 0; i < p->kept_rank; ++i) kept *= p->kept[i];                                    \
    for (int32_t i = 0; i < p->reduced_rank; ++i) count *= p->reduced[i];                             \
    for (int32_t i = 0; i < kept; ++i) {                                                              \
      const float* from = x + rewire_embedded_reduce_offset(p->kept_rank, p->kept, p->kept_steps, i); \
      float result = first;                                                                           \
      for (int32_t j = 0; j < count; ++j) {                                                           \
        const float value =                                                                           \
            from[rewire_embedded_reduce_offset(p->reduced_rank, p->reduced, p->reduced_steps, j)];    \
        result = STEP;                                                                                \
      }                                                                                               \
      *out++ = FINISH;                                                                                \
    }                                                                                                 \
  }

#endif  // REWIRE_EMBEDDED_REDUCE_H_
