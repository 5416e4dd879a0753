// SPDX-License-Identifier: Apache-2.0
//
// One pass of a resize, between elements of any type. It sums as the stock kernel does.
#ifndef REWIRE_EMBEDDED_VISION_RESIZE_H_
#define REWIRE_EMBEDDED_VISION_RESIZE_H_

#include "rewire/kernels/embedded/internal.h"

// STORE makes an element of the float `sum`.
#define REWIRE_EMBEDDED_RESIZE_PASS(name, From, To, STORE)                                              \
  void rewire_embedded_resize_##name(const struct rewire_embedded_resize* p, const From* x, To* out) {  \
    for (int32_t outer = 0; outer < p->outer; ++outer, x += p->input * p->inner) {                      \
      for (int32_t o = 0; o < p->output; ++o) {                                                         \
        for (int32_t i = 0; i < p->inner; ++i) {                                                        \
          float sum = 0;                                                                                \
          for (int32_t tap = 0; tap < p->taps; ++tap) {                                                 \
            const float weight = p->weights[o * p->taps + tap];                                         \
            const int32_t at = p->first[o] + tap;                                                       \
            const int32_t held = at < 0 ? 0 : at < p->input ? at : p->input - 1;                        \
            /* A tap of weight 0 does not count, also where the element is infinite or NaN. */          \
            if (weight != 0) sum = REWIRE_EMBEDDED_MUL_ADD(weight, (float)x[held * p->inner + i], sum); \
          }                                                                                             \
          *out++ = STORE;                                                                               \
        }                                                                                               \
      }                                                                                                 \
    }                                                                                                   \
  }
// Passes of bytes: in and out, in alone, out alone.
#define REWIRE_EMBEDDED_RESIZE_BYTES(dtype, T, least, most)                                 \
  REWIRE_EMBEDDED_RESIZE_PASS(dtype, T, T, (T)rewire_embedded_rounded(sum, 0, least, most)) \
  REWIRE_EMBEDDED_RESIZE_PASS(dtype##_to_f32, T, float, sum)                                \
  REWIRE_EMBEDDED_RESIZE_PASS(f32_to_##dtype, float, T, (T)rewire_embedded_rounded(sum, 0, least, most))

#endif  // REWIRE_EMBEDDED_VISION_RESIZE_H_
