// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/embedded/quantization/quantize.h"

REWIRE_EMBEDDED_QUANTIZE_LINEAR(int8_t, i8, -128, 127)
