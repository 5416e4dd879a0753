// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/embedded/internal.h"

void rewire_embedded_map_bytes(int32_t count, const void* x, const void* table, void* out) {
  const uint8_t *from = (const uint8_t*)x, *entries = (const uint8_t*)table;
  uint8_t* to = (uint8_t*)out;
  for (int32_t i = 0; i < count; ++i) to[i] = entries[from[i]];
}
