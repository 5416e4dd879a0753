// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/embedded/internal.h"

int32_t rewire_embedded_inside(const struct rewire_embedded_axis* axis, int32_t o, int32_t* first,
                               int32_t* last) {
  const int32_t begin = o * axis->stride - axis->before;
  *first = begin < 0 ? (-begin + axis->dilation - 1) / axis->dilation : 0;
  *last = 0;
  if (begin < axis->input) {
    *last = (axis->input - 1 - begin) / axis->dilation + 1;
    if (*last > axis->kernel) *last = axis->kernel;
  }
  return begin + *first * axis->dilation;
}

void rewire_embedded_cover(const struct rewire_embedded_axis* rows,
                           const struct rewire_embedded_axis* columns, int32_t channels, int32_t image,
                           int32_t y, int32_t x, struct rewire_embedded_covered* covered) {
  int32_t y0, y1, x0, x1;
  const int32_t first_y = rewire_embedded_inside(rows, y, &y0, &y1);
  const int32_t first_x = rewire_embedded_inside(columns, x, &x0, &x1);
  const int32_t line = columns->input * channels;
  covered->rows = x1 > x0 && y1 > y0 ? y1 - y0 : 0;
  covered->at = covered->rows == 0 ? 0 : (image * rows->input + first_y) * line + first_x * channels;
  covered->row_step = rows->dilation * line;
  covered->taps = x1 - x0;
  covered->tap_step = columns->dilation * channels;
  covered->channels = channels;
  covered->w_first = covered->rows == 0 ? 0 : (y0 * columns->kernel + x0) * channels;
  covered->w_row_step = columns->kernel * channels;
}
