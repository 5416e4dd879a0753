// SPDX-License-Identifier: Apache-2.0
//
// The innermost loop of the integer products by packed weights. Panels are as those of panels_f32.c, but the
// bytes of four successive k of a column lie side by side, in one word. The sums wrap.
#include "rewire/kernels/embedded/internal.h"

#if defined(__ARM_FEATURE_DSP) && __ARM_FEATURE_DSP && !defined(__ARM_BIG_ENDIAN)
#define USES_DSP 1
#include <arm_acle.h>
#else
#define USES_DSP 0
#endif

#define PANEL 32
#define HALF_PANEL 16
#define AT_ONCE 4

#if USES_DSP

// The bytes 1 and 3 of a word as two halves: one instruction, which GCC does not make of the intrinsic and a
// rotation.
static inline int16x2_t odd_bytes(uint32_t word) {
#ifdef __GNUC__
  int16x2_t halves;
  __asm__("sxtb16 %0, %1, ror #8" : "=r"(halves) : "r"(word));
  return halves;
#else
  return __sxtb16((int8x4_t)(word >> 8 | word << 24));
#endif
}

#define ADD_QUAD(sum, column)                                              \
  do {                                                                     \
    uint32_t word;                                                         \
    memcpy(&word, b + 4 * (column), sizeof(word));                         \
    sum = (uint32_t)__smlad(even, __sxtb16((int8x4_t)word), (int32_t)sum); \
    sum = (uint32_t)__smlad(odd, odd_bytes(word), (int32_t)sum);           \
  } while (0)

#else

#define ADD_QUAD(sum, column)                                                                          \
  sum += (uint32_t)(a[0] * b[4 * (column)] + a[1] * b[4 * (column) + 2] + a[2] * b[4 * (column) + 1] + \
                    a[3] * b[4 * (column) + 3])

#endif

void rewire_embedded_integer_panels(const struct rewire_embedded_integer_product* product, int16_t* x,
                                    void* out, int32_t at) {
  const int32_t depth = product->depth, columns = product->columns;
  // The second and the third of each four change places, since words of weights come apart so.
  uint32_t row_sum = 0;
  for (int16_t *four = x, *end = x + depth; four != end; four += 4) {
    const int16_t second = four[1], third = four[2];
    row_sum += (uint32_t)(four[0] + second + third + four[3]);
    four[1] = third;
    four[2] = second;
  }
  for (int32_t column = 0; column < columns; column += AT_ONCE) {
    const int32_t panel = column & ~(PANEL - 1);
    const int32_t width = columns - panel <= HALF_PANEL ? HALF_PANEL : PANEL;
    const int32_t used = columns - column < AT_ONCE ? columns - column : AT_ONCE;
    const int8_t* b = product->w + panel * depth + (column - panel) * 4;
    uint32_t s0 = 0, s1 = 0, s2 = 0, s3 = 0;
    const int16_t* a = x;
    for (const int16_t* end = a + depth; a != end; a += 4, b += 4 * width) {
#if USES_DSP
      int16x2_t even, odd;
      memcpy(&even, a, sizeof(even));
      memcpy(&odd, a + 2, sizeof(odd));
#endif
      ADD_QUAD(s0, 0);
      ADD_QUAD(s1, 1);
      ADD_QUAD(s2, 2);
      ADD_QUAD(s3, 3);
    }
    uint32_t sums[AT_ONCE] = {s0, s1, s2, s3};
    for (int32_t j = 0; j < used; ++j) {
      if (product->w_zero != NULL) {
        const uint32_t zero = (uint32_t)product->w_zero[(column + j) * product->finish->w_zero_step];
        sums[j] -= row_sum * zero;
      }
      if (product->whole_bias != NULL) sums[j] += (uint32_t)product->whole_bias[column + j];
    }
    product->finish->store(product->finish, (const int32_t*)sums, column, used, product->scale, product->bias,
                           out, at + column);
  }
}
