// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/embedded/internal.h"

// The positions of a window on the padded image.
static int32_t with_pads(const struct rewire_embedded_axis* axis, int32_t after, int32_t o) {
  struct rewire_embedded_axis padded = *axis;
  int32_t first, last;
  padded.input += axis->before + after;
  padded.before = 0;
  rewire_embedded_inside(&padded, o, &first, &last);
  return last - first;
}

void rewire_embedded_avg_pool_f32(const struct rewire_embedded_avg_pool* p, const float* x, float* out) {
  const struct rewire_embedded_pool* pool = &p->pool;
  for (int32_t i = 0; i < pool->outer; ++i) {
    for (int32_t oy = 0; oy < pool->rows.output; ++oy) {
      for (int32_t ox = 0; ox < pool->columns.output; ++ox) {
        struct rewire_embedded_covered covered;
        rewire_embedded_cover(&pool->rows, &pool->columns, pool->inner, i, oy, ox, &covered);
        int32_t count = covered.rows * covered.taps;
        if (p->count_include_pad) {
          count = with_pads(&pool->rows, p->rows_after, oy) * with_pads(&pool->columns, p->columns_after, ox);
        }
        for (int32_t c = 0; c < pool->inner; ++c) {
          float sum = 0;
          for (int32_t row = 0; row < covered.rows; ++row) {
            const float* from = x + covered.at + row * covered.row_step + c;
            for (int32_t tap = covered.taps; tap > 0; --tap, from += covered.tap_step) sum += *from;
          }
          *out++ = count == 0 ? 0 : sum / (float)count;
        }
      }
    }
  }
}
