// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/embedded/recurrent/sequence.h"

// Gates in the order of w, r and b: update, reset, candidate. The reset is behind the product.
static void advance_linear(const struct rewire_embedded_sequence* s, float* state) {
  const int32_t hidden = s->p->hidden;
  for (int32_t j = 0; j < hidden; ++j) {
    const float *sums = s->of_state + j, *more = s->of_x + j;
    const float let_through = sums[2 * hidden] / rewire_embedded_gate_divisor(sums[hidden] + more[hidden]);
    float divisor;
    const float dividend = rewire_embedded_tanh_fraction(more[2 * hidden] + let_through, &divisor);
    const float candidate = dividend / divisor;
    state[j] = candidate + (state[j] - candidate) / rewire_embedded_gate_divisor(sums[0] + more[0]);
  }
}

// The reset is in front of the product with the candidate's part of r, for which `reset` has [hidden].
static void advance(const struct rewire_embedded_sequence* s, float* reset, float* state) {
  const struct rewire_embedded_recurrent* p = s->p;
  const int32_t hidden = p->hidden;
  for (int32_t j = 0; j < hidden; ++j)
    reset[j] = state[j] / rewire_embedded_gate_divisor(s->of_x[hidden + j] + s->of_state[hidden + j]);
  p->multiply(reset, s->r + 2 * hidden * hidden, hidden, hidden, s->b == NULL ? NULL : s->b + 5 * hidden,
              s->of_state + 2 * hidden);
  for (int32_t j = 0; j < hidden; ++j) {
    const float candidate = rewire_embedded_tanh(s->of_x[2 * hidden + j] + s->of_state[2 * hidden + j]);
    state[j] = candidate + (state[j] - candidate) / rewire_embedded_gate_divisor(s->of_x[j] + s->of_state[j]);
  }
}

int32_t rewire_embedded_gru_f32(const struct rewire_embedded_recurrent* p, const float* x, const float* w,
                                const float* r, const float* b, const int32_t* lengths,
                                const float* initial_h, float* workspace, float* y, float* y_h) {
  for (int32_t direction = 0; direction < p->directions; ++direction) {
    for (int32_t place = 0; place < p->batch; ++place) {
      struct rewire_embedded_sequence s =
          rewire_embedded_sequence_at(p, 3, direction, place, x, w, r, b, lengths, workspace, y);
      if (s.length < 0 || s.length > p->steps) return 1;
      float* const state = y_h + rewire_embedded_state_at(&s);
      rewire_embedded_load_state(&s, initial_h, state);
      for (int32_t t = 0; t < p->steps; ++t) {
        if (t < s.length) {
          rewire_embedded_multiply_step(&s, t, state, p->linear_before_reset ? s.width : 2 * p->hidden);
          if (p->linear_before_reset)
            advance_linear(&s, state);
          else
            advance(&s, workspace + 2 * s.width, state);
        }
        rewire_embedded_store_step(&s, t, state);
      }
    }
  }
  return 0;
}
