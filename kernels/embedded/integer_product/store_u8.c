// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/embedded/integer_product/store.h"

REWIRE_EMBEDDED_STORE_BYTES(uint8_t, u8)
