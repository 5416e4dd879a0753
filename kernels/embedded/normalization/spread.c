// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/embedded/internal.h"

void rewire_embedded_spread(const float* x, int32_t count, float epsilon, float* center, float* factor) {
  float sum = 0, squares = 0;
  for (int32_t i = 0; i < count; ++i) sum += x[i];
  *center = sum / (float)count;
  for (int32_t i = 0; i < count; ++i) {
    const float value = x[i] - *center;
    squares = REWIRE_EMBEDDED_MUL_ADD(value, value, squares);
  }
  *factor = 1 / sqrtf(squares / (float)count + epsilon);
}
