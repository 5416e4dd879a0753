// SPDX-License-Identifier: Apache-2.0
//
// The innermost loop of the f32 products by packed weights. Panels are 32 columns wide, the last one 16 if it
// has no more; column j of unit k is panel[k * width + j]. Eight columns at a time are summed in registers:
// each in the order of its units, the bias first.
#include "rewire/kernels/embedded/internal.h"

#define PANEL 32
#define HALF_PANEL 16
#define AT_ONCE 8

void rewire_embedded_panels_f32(const struct rewire_embedded_covered* covered, const float* x, const float* w,
                                int32_t depth, int32_t columns, const float* bias, const float* addend,
                                const struct rewire_embedded_activation* activation, float* out) {
  // Positions beside each other are one run.
  const int32_t joined = covered->tap_step == covered->channels;
  const int32_t runs = joined ? 1 : covered->taps;
  const int32_t run = joined ? covered->taps * covered->channels : covered->channels;
  for (int32_t column = 0; column < columns; column += AT_ONCE) {
    const int32_t panel = column & ~(PANEL - 1);
    const int32_t width = columns - panel <= HALF_PANEL ? HALF_PANEL : PANEL;
    const int32_t used = columns - column < AT_ONCE ? columns - column : AT_ONCE;
    const float* first = w + panel * depth + (column - panel) + covered->w_first * width;
    float sums[AT_ONCE] = {0};
    // Whole blocks are read and written where they are. A copy of a length that varies is a call.
    const float* terms = bias == NULL || used != AT_ONCE ? sums : bias + column;
    if (bias != NULL && terms == sums) memcpy(sums, bias + column, (size_t)used * sizeof(float));
    float s0 = terms[0], s1 = terms[1], s2 = terms[2], s3 = terms[3];
    float s4 = terms[4], s5 = terms[5], s6 = terms[6], s7 = terms[7];
    for (int32_t row = 0; row < covered->rows; ++row) {
      for (int32_t i = 0; i < runs; ++i) {
        const float* a = x + covered->at + row * covered->row_step + i * covered->tap_step;
        const float* b = first + (row * covered->w_row_step + i * run) * width;
        for (const float* end = a + run; a != end; b += width) {
          const float factor = *a++;
          s0 = REWIRE_EMBEDDED_MUL_ADD(factor, b[0], s0);
          s1 = REWIRE_EMBEDDED_MUL_ADD(factor, b[1], s1);
          s2 = REWIRE_EMBEDDED_MUL_ADD(factor, b[2], s2);
          s3 = REWIRE_EMBEDDED_MUL_ADD(factor, b[3], s3);
          s4 = REWIRE_EMBEDDED_MUL_ADD(factor, b[4], s4);
          s5 = REWIRE_EMBEDDED_MUL_ADD(factor, b[5], s5);
          s6 = REWIRE_EMBEDDED_MUL_ADD(factor, b[6], s6);
          s7 = REWIRE_EMBEDDED_MUL_ADD(factor, b[7], s7);
        }
      }
    }
    float* const to = addend == NULL && used == AT_ONCE ? out + column : sums;
    to[0] = s0;
    to[1] = s1;
    to[2] = s2;
    to[3] = s3;
    to[4] = s4;
    to[5] = s5;
    to[6] = s6;
    to[7] = s7;
    if (to != sums) continue;
    for (int32_t j = 0; addend != NULL && j < used; ++j) sums[j] += addend[column + j];
    memcpy(out + column, sums, (size_t)used * sizeof(float));
  }
  rewire_embedded_activate(activation, out, columns);
}
