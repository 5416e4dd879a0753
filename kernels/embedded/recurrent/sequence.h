// SPDX-License-Identifier: Apache-2.0
//
// Recurrent kernels share this: the steps of a layer, and where each finds its rows.
#ifndef REWIRE_EMBEDDED_RECURRENT_SEQUENCE_H_
#define REWIRE_EMBEDDED_RECURRENT_SEQUENCE_H_

#include "rewire/kernels/embedded/functions.h"

// One sequence in one direction, and its products: w times x, plus w's bias, and r times the state, plus r's.
struct rewire_embedded_sequence {
  const struct rewire_embedded_recurrent* p;
  const float *x, *w, *r, *b;
  float *sums, *of_state;  // [width]
  const float* of_x;       // `sums`, or a row of x
  float* y;
  int32_t width, direction, place, length;
};

// The sequence `place` of direction `direction`. The weights are those of all directions.
static inline struct rewire_embedded_sequence rewire_embedded_sequence_at(
    const struct rewire_embedded_recurrent* p, int32_t gates, int32_t direction, int32_t place,
    const float* x, const float* w, const float* r, const float* b, const int32_t* lengths, float* workspace,
    float* y) {
  struct rewire_embedded_sequence s;
  s.p = p;
  s.width = gates * p->hidden;
  s.x = x;
  s.w = w == NULL ? NULL : w + direction * p->columns * p->inputs;
  s.r = r + direction * p->columns * p->hidden;
  s.b = b == NULL ? NULL : b + direction * 2 * s.width;
  s.sums = workspace;
  s.of_x = workspace;
  s.of_state = workspace + s.width;
  s.y = y;
  s.direction = direction;
  s.place = place;
  s.length = lengths == NULL ? p->steps : lengths[place];
  return s;
}

// The place of the sequence's state in y_h.
static inline int32_t rewire_embedded_state_at(const struct rewire_embedded_sequence* s) {
  const struct rewire_embedded_recurrent* p = s->p;
  return (p->batch_first ? s->place * p->directions + s->direction : s->direction * p->batch + s->place) *
         p->hidden;
}

// The initial state, which may lie there already.
static inline void rewire_embedded_load_state(const struct rewire_embedded_sequence* s, const float* from,
                                              float* to) {
  for (int32_t j = 0; j < s->p->hidden; ++j) to[j] = from == NULL ? 0 : from[rewire_embedded_state_at(s) + j];
}

// Multiplies x of step t and the state. Without w, of_x becomes that row of x.
static inline void rewire_embedded_multiply_step(struct rewire_embedded_sequence* s, int32_t t,
                                                 const float* state, int32_t columns) {
  const struct rewire_embedded_recurrent* p = s->p;
  const int32_t time = s->direction == 1 || p->is_reversed ? s->length - 1 - t : t;
  const int32_t row = p->batch_first ? s->place * p->steps + time : time * p->batch + s->place;
  if (s->w == NULL)
    s->of_x = s->x + row * s->width;
  else
    p->multiply(s->x + row * p->inputs, s->w, p->inputs, s->width, s->b, s->sums);
  p->multiply(state, s->r, p->hidden, columns, s->b == NULL ? NULL : s->b + s->width, s->of_state);
}

// Writes y of step t: the state, or zeros behind the sequence's end.
static inline void rewire_embedded_store_step(const struct rewire_embedded_sequence* s, int32_t t,
                                              const float* state) {
  const struct rewire_embedded_recurrent* p = s->p;
  const int32_t turned = t < s->length && (s->direction == 1 || p->is_reversed);
  const int32_t time = turned ? s->length - 1 - t : t;
  if (s->y == NULL) return;
  float* to = s->y + (p->batch_first ? (s->place * p->steps + time) * p->directions + s->direction
                                     : (time * p->directions + s->direction) * p->batch + s->place) *
                         p->hidden;
  for (int32_t j = 0; j < p->hidden; ++j) to[j] = t < s->length ? state[j] : 0;
}

// By 1 + exp(-x) a gate divides what it lets through.
static inline float rewire_embedded_gate_divisor(float x) { return 1.0F + rewire_embedded_exp(-x); }

#endif  // REWIRE_EMBEDDED_RECURRENT_SEQUENCE_H_
