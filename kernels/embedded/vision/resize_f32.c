// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/embedded/vision/resize.h"

REWIRE_EMBEDDED_RESIZE_PASS(f32, float, float, sum)
