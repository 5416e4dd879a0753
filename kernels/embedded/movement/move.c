// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/embedded/internal.h"

// One line of elements, in steps of bytes. Copies of a constant size are one instruction.
static void move_line(const char* from, ptrdiff_t from_step, char* to, ptrdiff_t to_step, int32_t count,
                      int32_t bytes) {
  if (from_step == bytes && to_step == bytes) {
    memcpy(to, from, (size_t)count * (size_t)bytes);
    return;
  }
  for (; count > 0; --count, from += from_step, to += to_step) {
    if (bytes == 4)
      memcpy(to, from, 4);
    else if (bytes == 1)
      *to = *from;
    else
      memcpy(to, from, (size_t)bytes);
  }
}

void rewire_embedded_move_elements(const struct rewire_embedded_move* p, const void* from, void* to) {
  const char* source = (const char*)from;
  char* target = (char*)to;
  const ptrdiff_t bytes = p->element_bytes;
  const int32_t last = p->rank - 1;
  int32_t index[REWIRE_EMBEDDED_MOST_RANK] = {0};
  int32_t axis;
  do {
    move_line(source, p->from_steps[last] * bytes, target, p->to_steps[last] * bytes, p->dims[last],
              p->element_bytes);
    for (axis = last - 1; axis >= 0; --axis) {
      const int32_t ends = ++index[axis] == p->dims[axis];
      const ptrdiff_t steps = bytes * (ends ? 1 - p->dims[axis] : 1);
      source += p->from_steps[axis] * steps;
      target += p->to_steps[axis] * steps;
      if (!ends) break;
      index[axis] = 0;
    }
  } while (axis >= 0);
}
