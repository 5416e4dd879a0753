// SPDX-License-Identifier: Apache-2.0
//
// The largest element under each window, NaN if one is.
#ifndef REWIRE_EMBEDDED_MAX_POOL_H_
#define REWIRE_EMBEDDED_MAX_POOL_H_

#include "rewire/kernels/embedded/internal.h"

#define REWIRE_EMBEDDED_MAX_POOL(T, dtype, least, IS_LARGER)                                        \
  void rewire_embedded_max_pool_##dtype(const struct rewire_embedded_pool* p, const T* x, T* out) { \
    for (int32_t i = 0; i < p->outer; ++i) {                                                        \
      for (int32_t oy = 0; oy < p->rows.output; ++oy) {                                             \
        for (int32_t ox = 0; ox < p->columns.output; ++ox) {                                        \
          struct rewire_embedded_covered covered;                                                   \
          rewire_embedded_cover(&p->rows, &p->columns, p->inner, i, oy, ox, &covered);              \
          for (int32_t c = 0; c < p->inner; ++c) {                                                  \
            T most = least;                                                                         \
            for (int32_t row = 0; row < covered.rows; ++row) {                                      \
              const T* from = x + covered.at + row * covered.row_step + c;                          \
              for (int32_t tap = covered.taps; tap > 0; --tap, from += covered.tap_step) {          \
                if (IS_LARGER(*from, most)) most = *from;                                           \
              }                                                                                     \
            }                                                                                       \
            *out++ = most;                                                                          \
          }                                                                                         \
        }                                                                                           \
      }                                                                                             \
    }                                                                                               \
  }

#endif  // REWIRE_EMBEDDED_MAX_POOL_H_
