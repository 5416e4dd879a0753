// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/embedded/vision/resize.h"

REWIRE_EMBEDDED_RESIZE_BYTES(u8, uint8_t, 0, 255)
