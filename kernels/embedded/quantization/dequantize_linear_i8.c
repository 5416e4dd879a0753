// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/embedded/quantization/quantize.h"

REWIRE_EMBEDDED_DEQUANTIZE_LINEAR(int8_t, i8)
