// SPDX-License-Identifier: Apache-2.0
//
// The integer products store of a sum: the float of it times scale, plus bias, rounded once.
#ifndef REWIRE_EMBEDDED_STORE_H_
#define REWIRE_EMBEDDED_STORE_H_

#include "rewire/kernels/embedded/internal.h"

static inline float rewire_embedded_scaled(const struct rewire_embedded_integer_finish* finish, int32_t sum,
                                           int32_t column, const float* scale, const float* bias) {
  const float value = (float)sum, factor = scale[column * finish->scale_step];
  return bias != NULL ? fmaf(value, factor, bias[column]) : value * factor;
}

// `by` is a copy, which the compiler need not read again behind each byte that is written.
#define REWIRE_EMBEDDED_STORE_BYTES(T, dtype)                                            \
  REWIRE_EMBEDDED_STORE(dtype) {                                                         \
    T* const to = (T*)out + at;                                                          \
    const struct rewire_embedded_integer_finish by = *finish;                            \
    for (int32_t i = 0; i < count; ++i) {                                                \
      const float value = rewire_embedded_scaled(&by, sums[i], column + i, scale, bias); \
      to[i] = (T)rewire_embedded_rounded(value, by.zero, by.least, by.most);             \
    }                                                                                    \
  }

#endif  // REWIRE_EMBEDDED_STORE_H_
