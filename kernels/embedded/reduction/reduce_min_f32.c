// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/embedded/reduction/reduce.h"

REWIRE_EMBEDDED_REDUCE(min, INFINITY, value < result || value != value ? value : result, result)
