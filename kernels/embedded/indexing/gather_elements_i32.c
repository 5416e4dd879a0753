// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/embedded/indexing/gather_elements.h"

REWIRE_EMBEDDED_GATHER_ELEMENTS(i32, int32_t)
