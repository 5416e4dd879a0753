// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/embedded/functions.h"

REWIRE_EMBEDDED_ACTIVATION(clip) {
  for (int32_t i = 0; i < count; ++i)
    values[i] = rewire_embedded_Clip(values[i], activation->alpha, activation->beta);
}
