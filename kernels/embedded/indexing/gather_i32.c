// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/embedded/indexing/gather.h"

REWIRE_EMBEDDED_GATHER(int32_t, i32)
