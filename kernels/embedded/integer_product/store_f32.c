// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/embedded/integer_product/store.h"

REWIRE_EMBEDDED_STORE(f32) {
  float* const to = (float*)out + at;
  for (int32_t i = 0; i < count; ++i)
    to[i] = rewire_embedded_scaled(finish, sums[i], column + i, scale, bias);
  rewire_embedded_activate(finish->activation, to, count);
}
