// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/embedded/reduction/reduce.h"

#define STEP(T) (T)((uint64_t)result + (uint64_t)value)
#define FINISH(T) (T)(result / count)
REWIRE_EMBEDDED_REDUCE_INTEGERS(mean, 0, 0, 0, 0, STEP, FINISH)
