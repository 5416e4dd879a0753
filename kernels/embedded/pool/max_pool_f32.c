// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/embedded/pool/max_pool.h"

#define IS_LARGER(value, most) ((value) > (most) || (value) != (value))

REWIRE_EMBEDDED_MAX_POOL(float, f32, -INFINITY, IS_LARGER)
