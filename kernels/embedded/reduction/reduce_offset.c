// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/embedded/reduction/reduce.h"

int32_t rewire_embedded_reduce_offset(int32_t rank, const int32_t* sizes, const int32_t* steps,
                                      int32_t number) {
  int32_t offset = 0;
  for (int32_t i = rank; i-- > 0; number /= sizes[i]) offset += number % sizes[i] * steps[i];
  return offset;
}
