// SPDX-License-Identifier: Apache-2.0
#ifndef REWIRE_EMBEDDED_GATHER_ELEMENTS_H_
#define REWIRE_EMBEDDED_GATHER_ELEMENTS_H_

#include "rewire/kernels/embedded/internal.h"

#define REWIRE_EMBEDDED_GATHER_ELEMENTS(dtype, Index)                                                       \
  int32_t rewire_embedded_gather_elements_##dtype(const struct rewire_embedded_gather_elements* p,          \
                                                  const void* x, const Index* indices, void* out) {         \
    const unsigned char* const from = (const unsigned char*)x;                                              \
    unsigned char* to = (unsigned char*)out;                                                                \
    int32_t count = 1;                                                                                      \
    for (int32_t i = 0; i < p->rank; ++i) count *= p->dims[i];                                              \
    for (int32_t number = 0; number < count; ++number, to += p->element_bytes) {                            \
      int32_t at = 0, rest = number;                                                                        \
      for (int32_t i = p->rank; i-- > 0; rest /= p->dims[i]) at += rest % p->dims[i] * p->steps[i];         \
      const Index given = indices[number], index = given < 0 ? given + p->axis : given;                     \
      if (index < 0 || index >= p->axis) return 1;                                                          \
      memcpy(to, from + (at + (int32_t)index * p->axis_step) * p->element_bytes, (size_t)p->element_bytes); \
    }                                                                                                       \
    return 0;                                                                                               \
  }

#endif  // REWIRE_EMBEDDED_GATHER_ELEMENTS_H_
