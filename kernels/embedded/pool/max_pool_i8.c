// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/embedded/pool/max_pool.h"

#define IS_LARGER(value, most) ((value) > (most))

REWIRE_EMBEDDED_MAX_POOL(int8_t, i8, INT8_MIN, IS_LARGER)
