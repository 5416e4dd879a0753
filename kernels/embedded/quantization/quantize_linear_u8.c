// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/embedded/quantization/quantize.h"

REWIRE_EMBEDDED_QUANTIZE_LINEAR(uint8_t, u8, 0, 255)
