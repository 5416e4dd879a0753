// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/embedded/internal.h"

void rewire_embedded_resize_nearest_elements(const struct rewire_embedded_resize_nearest* p, const void* x,
                                             void* out) {
  const unsigned char* from = (const unsigned char*)x;
  unsigned char* to = (unsigned char*)out;
  int32_t count = 1, positions = 0;
  for (int32_t i = 0; i < p->rank; ++i) {
    count *= p->dims[i];
    positions += p->dims[i];
  }
  for (int32_t outer = 0; outer < p->outer; ++outer, from += p->outer_bytes) {
    for (int32_t number = 0; number < count; ++number, to += p->inner_bytes) {
      const int32_t* place = p->places + positions;
      int32_t at = 0, rest = number;
      for (int32_t i = p->rank; i-- > 0;) {
        place -= p->dims[i];
        at += place[rest % p->dims[i]];
        rest /= p->dims[i];
      }
      memcpy(to, from + at, (size_t)p->inner_bytes);
    }
  }
}
