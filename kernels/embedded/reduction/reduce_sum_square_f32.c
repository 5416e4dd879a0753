// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/embedded/reduction/reduce.h"

REWIRE_EMBEDDED_REDUCE(sum_square, 0, REWIRE_EMBEDDED_MUL_ADD(value, value, result), result)
