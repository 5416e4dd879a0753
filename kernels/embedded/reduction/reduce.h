// SPDX-License-Identifier: Apache-2.0
//
// The walk over kept and reduced axes that all reductions share. A step sees the value and the result so far.
#ifndef REWIRE_EMBEDDED_REDUCE_H_
#define REWIRE_EMBEDDED_REDUCE_H_

#include "rewire/kernels/embedded/internal.h"

// Element `number`, row-major, of axes with these sizes and steps.
int32_t rewire_embedded_reduce_offset(int32_t rank, const int32_t* sizes, const int32_t* steps,
                                      int32_t number);

#define REWIRE_EMBEDDED_REDUCE_OF(name, dtype, T, first, STEP, FINISH)                             \
  REWIRE_EMBEDDED_REDUCTION_OF(name, dtype, T) {                                                   \
    int32_t kept = 1, count = 1;                                                                   \
    for (int32_t i = 0; i < p->kept_rank; ++i) kept *= p->kept[i];                                 \
    for (int32_t i = 0; i < p->reduced_rank; ++i) count *= p->reduced[i];                          \
    for (int32_t i = 0; i < kept; ++i) {                                                           \
      const T* from = x + rewire_embedded_reduce_offset(p->kept_rank, p->kept, p->kept_steps, i);  \
      T result = first;                                                                            \
      for (int32_t j = 0; j < count; ++j) {                                                        \
        const T value =                                                                            \
            from[rewire_embedded_reduce_offset(p->reduced_rank, p->reduced, p->reduced_steps, j)]; \
        result = STEP;                                                                             \
      }                                                                                            \
      *out++ = FINISH;                                                                             \
    }                                                                                              \
  }
#define REWIRE_EMBEDDED_REDUCE(name, first, STEP, FINISH) \
  REWIRE_EMBEDDED_REDUCE_OF(name, f32, float, first, STEP, FINISH)

// Results of integers wrap. STEP and FINISH take the type of an element.
#define REWIRE_EMBEDDED_REDUCE_INTEGERS(name, first_i8, first_u8, first_i32, first_i64, STEP, FINISH) \
  REWIRE_EMBEDDED_REDUCE_OF(name, i8, int8_t, first_i8, STEP(int8_t), FINISH(int8_t))                 \
  REWIRE_EMBEDDED_REDUCE_OF(name, u8, uint8_t, first_u8, STEP(uint8_t), FINISH(uint8_t))              \
  REWIRE_EMBEDDED_REDUCE_OF(name, i32, int32_t, first_i32, STEP(int32_t), FINISH(int32_t))            \
  REWIRE_EMBEDDED_REDUCE_OF(name, i64, int64_t, first_i64, STEP(int64_t), FINISH(int64_t))
#define REWIRE_EMBEDDED_WHOLE(T) result

#endif  // REWIRE_EMBEDDED_REDUCE_H_
