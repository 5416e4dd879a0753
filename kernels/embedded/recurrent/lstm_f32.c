// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/embedded/recurrent/sequence.h"

// Gates in the order of w, r and b: input, output, forget, candidate. Peepholes: input, output, forget.
static float gate(const struct rewire_embedded_sequence* s, int32_t number, int32_t j, const float* peepholes,
                  float cell) {
  const int32_t at = number * s->p->hidden + j;
  const float sum = s->of_state[at] + s->of_x[at];
  return rewire_embedded_gate_divisor(peepholes == NULL ? sum
                                                        : REWIRE_EMBEDDED_MUL_ADD(peepholes[at], cell, sum));
}

static void advance(const struct rewire_embedded_sequence* s, const float* peepholes, float* state,
                    float* cells) {
  const int32_t hidden = s->p->hidden;
  for (int32_t j = 0; j < hidden; ++j) {
    const int32_t at = 3 * hidden + j;
    float divisor;
    const float dividend = rewire_embedded_tanh_fraction(s->of_state[at] + s->of_x[at], &divisor);
    const float taken = dividend / (gate(s, 0, j, peepholes, cells[j]) * divisor);
    cells[j] = cells[j] / gate(s, 2, j, peepholes, cells[j]) + taken;
    const float shown = rewire_embedded_tanh_fraction(cells[j], &divisor);
    state[j] = shown / (gate(s, 1, j, peepholes, cells[j]) * divisor);
  }
}

int32_t rewire_embedded_lstm_f32(const struct rewire_embedded_recurrent* p, const float* x, const float* w,
                                 const float* r, const float* b, const int32_t* lengths,
                                 const float* initial_h, const float* initial_c, const float* peepholes,
                                 float* workspace, float* y, float* y_h, float* y_c) {
  for (int32_t direction = 0; direction < p->directions; ++direction) {
    const float* const seen = peepholes == NULL ? NULL : peepholes + direction * 3 * p->hidden;
    for (int32_t place = 0; place < p->batch; ++place) {
      struct rewire_embedded_sequence s =
          rewire_embedded_sequence_at(p, 4, direction, place, x, w, r, b, lengths, workspace, y);
      if (s.length < 0 || s.length > p->steps) return 1;
      float* const state = y_h + rewire_embedded_state_at(&s);
      float* const cells = y_c + rewire_embedded_state_at(&s);
      rewire_embedded_load_state(&s, initial_h, state);
      rewire_embedded_load_state(&s, initial_c, cells);
      for (int32_t t = 0; t < p->steps; ++t) {
        if (t < s.length) {
          rewire_embedded_multiply_step(&s, t, state, s.width);
          advance(&s, seen, state, cells);
        }
        rewire_embedded_store_step(&s, t, state);
      }
    }
  }
  return 0;
}
