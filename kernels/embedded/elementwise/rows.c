// SPDX-License-Identifier: Apache-2.0
//
// Each row is a section of its own, so a program links those that it names (-Wl,--gc-sections).
#include "rewire/kernels/embedded/rewire_embedded_rows.h"

#define ROW_OF_ONE(kernel, function) \
  REWIRE_EMBEDDED_ROW_1(rewire_embedded_##kernel##_f32, float, float, rewire_embedded_##function(a))
REWIRE_EMBEDDED_ROWS_OF_ONE(ROW_OF_ONE)

#define ROW_OF_TWO(kernel, function) \
  REWIRE_EMBEDDED_ROW_2(rewire_embedded_##kernel##_f32, float, float, float, rewire_embedded_##function(a, b))
REWIRE_EMBEDDED_ROWS_OF_TWO(ROW_OF_TWO)

#define ROW_OF_THREE(kernel, function)                                              \
  REWIRE_EMBEDDED_ROW_3(rewire_embedded_##kernel##_f32, float, float, float, float, \
                        rewire_embedded_##function(a, b, c))
REWIRE_EMBEDDED_ROWS_OF_THREE(ROW_OF_THREE)

#define COMPARISON(kernel, expression) \
  REWIRE_EMBEDDED_ROW_2(rewire_embedded_##kernel##_f32, float, float, uint8_t, expression)
REWIRE_EMBEDDED_COMPARISONS(COMPARISON)

REWIRE_EMBEDDED_ROW_3(rewire_embedded_where_1, uint8_t, uint8_t, uint8_t, uint8_t, a != 0 ? b : c)
REWIRE_EMBEDDED_ROW_3(rewire_embedded_where_4, uint8_t, uint32_t, uint32_t, uint32_t, a != 0 ? b : c)
REWIRE_EMBEDDED_ROW_3(rewire_embedded_where_8, uint8_t, uint64_t, uint64_t, uint64_t, a != 0 ? b : c)
REWIRE_EMBEDDED_ROW_2(rewire_embedded_and, uint8_t, uint8_t, uint8_t, a != 0 && b != 0)
REWIRE_EMBEDDED_ROW_2(rewire_embedded_or, uint8_t, uint8_t, uint8_t, a != 0 || b != 0)
REWIRE_EMBEDDED_ROW_2(rewire_embedded_xor, uint8_t, uint8_t, uint8_t, (a != 0) != (b != 0))
REWIRE_EMBEDDED_ROW_1(rewire_embedded_not, uint8_t, uint8_t, a == 0)
