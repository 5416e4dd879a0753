// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/embedded/reduction/arg_reduce.h"

REWIRE_EMBEDDED_ARG_REDUCE(argmin, int8_t, i8, <)
