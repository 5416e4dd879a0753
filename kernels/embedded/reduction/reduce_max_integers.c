// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/embedded/reduction/reduce.h"

#define STEP(T) value > result ? value : result
REWIRE_EMBEDDED_REDUCE_INTEGERS(max, INT8_MIN, 0, INT32_MIN, INT64_MIN, STEP, REWIRE_EMBEDDED_WHOLE)
