// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/embedded/internal.h"

REWIRE_EMBEDDED_ACTIVATION(move) {
  for (int32_t i = 0; i < count; ++i)
    values[i] = rewire_embedded_rounded_product(values[i], activation->alpha) + activation->beta;
}
