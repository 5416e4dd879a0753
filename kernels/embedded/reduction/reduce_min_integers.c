// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/embedded/reduction/reduce.h"

#define STEP(T) value < result ? value : result
REWIRE_EMBEDDED_REDUCE_INTEGERS(min, INT8_MAX, UINT8_MAX, INT32_MAX, INT64_MAX, STEP, REWIRE_EMBEDDED_WHOLE)
