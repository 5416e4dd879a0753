// SPDX-License-Identifier: Apache-2.0
//
// The position of the element that beats all others: the first of equal ones, or the last if p->last. A NaN
// beats numbers.
#ifndef REWIRE_EMBEDDED_ARG_REDUCE_H_
#define REWIRE_EMBEDDED_ARG_REDUCE_H_

#include "rewire/kernels/embedded/internal.h"

#define REWIRE_EMBEDDED_BEATS(a, OP, b) ((a)OP(b) || ((a) != (a) && (b) == (b)))

#define REWIRE_EMBEDDED_ARG_REDUCE(name, T, dtype, OP)                                                    \
  REWIRE_EMBEDDED_ARG_REDUCTION(name, T, dtype) {                                                         \
    const int32_t inner = p->view.inner;                                                                  \
    int32_t at = 0;                                                                                       \
    for (int32_t i = 0; i < p->view.outer; ++i, x += p->view.count * inner) {                             \
      for (int32_t column = 0; column < inner; ++column, ++at) {                                          \
        T best = x[column];                                                                               \
        int32_t position = 0;                                                                             \
        for (int32_t j = 1; j < p->view.count; ++j) {                                                     \
          const T value = x[j * inner + column];                                                          \
          if (p->last ? REWIRE_EMBEDDED_BEATS(best, OP, value) : !REWIRE_EMBEDDED_BEATS(value, OP, best)) \
            continue;                                                                                     \
          best = value;                                                                                   \
          position = j;                                                                                   \
        }                                                                                                 \
        if (p->out_is_wide)                                                                               \
          ((int64_t*)out)[at] = position;                                                                 \
        else                                                                                              \
          ((int32_t*)out)[at] = position;                                                                 \
      }                                                                                                   \
    }                                                                                                     \
  }

#endif  // REWIRE_EMBEDDED_ARG_REDUCE_H_
