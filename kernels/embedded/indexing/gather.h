// SPDX-License-Identifier: Apache-2.0
#ifndef REWIRE_EMBEDDED_GATHER_H_
#define REWIRE_EMBEDDED_GATHER_H_

#include "rewire/kernels/embedded/internal.h"

#define REWIRE_EMBEDDED_GATHER(T, dtype)                                                        \
  int32_t rewire_embedded_gather_##dtype(const struct rewire_embedded_gather* p, const void* x, \
                                         const T* indices, void* out) {                         \
    const char* from = (const char*)x;                                                          \
    char* to = (char*)out;                                                                      \
    for (int32_t i = 0; i < p->outer; ++i, from += p->axis * p->inner_bytes) {                  \
      for (int32_t j = 0; j < p->count; ++j, to += p->inner_bytes) {                            \
        T index = indices[j];                                                                   \
        if (index < 0) index += p->axis;                                                        \
        if (index < 0 || index >= p->axis) return 1;                                            \
        memcpy(to, from + (int32_t)index * p->inner_bytes, (size_t)p->inner_bytes);             \
      }                                                                                         \
    }                                                                                           \
    return 0;                                                                                   \
  }

#endif  // REWIRE_EMBEDDED_GATHER_H_
