// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/embedded/quantization/quantize.h"

REWIRE_EMBEDDED_DEQUANTIZE_LINEAR(uint8_t, u8)
