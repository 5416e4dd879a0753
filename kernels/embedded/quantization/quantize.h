// SPDX-License-Identifier: Apache-2.0
#ifndef REWIRE_EMBEDDED_QUANTIZE_H_
#define REWIRE_EMBEDDED_QUANTIZE_H_

#include "rewire/kernels/embedded/internal.h"

#define REWIRE_EMBEDDED_QUANTIZE_LINEAR(T, dtype, least, most)                                        \
  void rewire_embedded_quantize_linear_##dtype(const struct rewire_embedded_along* p, const float* x, \
                                               const float* scale, const T* zero, T* out) {           \
    for (int32_t i = 0; i < p->outer; ++i) {                                                          \
      for (int32_t j = 0; j < p->count; ++j) {                                                        \
        const float shift = zero == NULL ? 0 : (float)zero[j];                                        \
        for (int32_t k = p->inner; k > 0; --k)                                                        \
          *out++ = (T)rewire_embedded_rounded(*x++ / scale[j], shift, least, most);                   \
      }                                                                                               \
    }                                                                                                 \
  }

#define REWIRE_EMBEDDED_DEQUANTIZE_LINEAR(T, dtype)                                                 \
  void rewire_embedded_dequantize_linear_##dtype(const struct rewire_embedded_along* p, const T* x, \
                                                 const float* scale, const T* zero, float* out) {   \
    for (int32_t i = 0; i < p->outer; ++i) {                                                        \
      for (int32_t j = 0; j < p->count; ++j) {                                                      \
        const int32_t shift = zero == NULL ? 0 : zero[j];                                           \
        for (int32_t k = p->inner; k > 0; --k) *out++ = (float)(*x++ - shift) * scale[j];           \
      }                                                                                             \
    }                                                                                               \
  }

// Both products are rounded before they are added, as two operators round them.
#define REWIRE_EMBEDDED_ADD_QUANTIZED(T, dtype)                                                         \
  void rewire_embedded_add_quantized_##dtype(const struct rewire_embedded_add_quantized* p, const T* a, \
                                             const T* b, T* out) {                                      \
    for (int32_t i = 0; i < p->count; ++i) {                                                            \
      const float of_a = rewire_embedded_rounded_product((float)(a[i] - p->a_zero), p->a_scale);        \
      const float of_b = rewire_embedded_rounded_product((float)(b[i] - p->b_zero), p->b_scale);        \
      out[i] = (T)rewire_embedded_rounded((of_a + of_b) / p->scale, p->zero, p->least, p->most);        \
    }                                                                                                   \
  }

#endif  // REWIRE_EMBEDDED_QUANTIZE_H_
