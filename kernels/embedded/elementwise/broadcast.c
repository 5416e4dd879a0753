// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/embedded/internal.h"

void rewire_embedded_broadcast_rows(const struct rewire_embedded_broadcast* p, rewire_embedded_row* row,
                                    const void* const* x, void* out) {
  const void* at[REWIRE_EMBEDDED_MOST_INPUTS];
  int32_t steps[REWIRE_EMBEDDED_MOST_INPUTS];
  int32_t index[REWIRE_EMBEDDED_MOST_RANK] = {0};
  const int32_t last = p->rank - 1;
  const int32_t count = last < 0 ? 1 : p->dims[last];
  for (int32_t i = 0; i < p->rank; ++i) {
    if (p->dims[i] == 0) return;
  }
  for (int32_t j = 0; j < p->inputs; ++j) {
    at[j] = x[j];
    steps[j] = last < 0 ? 0 : p->steps[j][last];
  }
  for (;;) {
    row(count, at, steps, out);
    out = (char*)out + (size_t)count * p->out_size;
    int32_t axis = last - 1;
    for (; axis >= 0; --axis) {
      const int32_t ends = ++index[axis] == p->dims[axis];
      for (int32_t j = 0; j < p->inputs; ++j) {
        const int32_t step = p->steps[j][axis] * (ends ? 1 - p->dims[axis] : 1);
        at[j] = (const char*)at[j] + (ptrdiff_t)step * p->sizes[j];
      }
      if (!ends) break;
      index[axis] = 0;
    }
    if (axis < 0) return;
  }
}
