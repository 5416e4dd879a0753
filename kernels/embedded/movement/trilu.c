// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/embedded/internal.h"

void rewire_embedded_trilu_elements(const struct rewire_embedded_trilu* p, const void* x, void* out) {
  const size_t bytes = (size_t)p->element_bytes;
  const unsigned char* from = (const unsigned char*)x;
  unsigned char* to = (unsigned char*)out;
  for (int32_t line = 0; line < p->matrices * p->rows; ++line) {
    // The first column of the upper part, or of what is behind the lower one.
    const int32_t edge = line % p->rows + p->diagonal + (p->upper ? 0 : 1);
    for (int32_t column = 0; column < p->columns; ++column, from += bytes, to += bytes) {
      const int32_t stays = p->upper ? column >= edge : column < edge;
      if (!stays) {
        memset(to, 0, bytes);
      } else if (to != from) {
        memcpy(to, from, bytes);
      }
    }
  }
}
