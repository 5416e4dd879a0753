// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/embedded/vision/resize.h"

REWIRE_EMBEDDED_RESIZE_BYTES(i8, int8_t, -128, 127)
