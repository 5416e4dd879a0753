// SPDX-License-Identifier: Apache-2.0
// Recurrent layers: one launch for each time step and all directions, batches and units. What the inputs
// contribute has been multiplied before. A group of 64 threads computes 4 units, 16 threads each.

#define UNITS 4
#define LANES 16
#define MOST_GATES 4

FUNCTION float gate_function(GateFunction f, float x) {
  switch (f.kind) {
    case kGateSigmoid:
      return Sigmoid(x);
    case kGateTanh:
      return tanh(x);
    case kGateRelu:
      return Relu(x);
    case kGateAffine:
      return f.alpha * x + f.beta;
    case kGateLeakyRelu:
      return PRelu(x, f.alpha);
    case kGateThresholdedRelu:
      return x < f.alpha ? 0.0f : x;
    case kGateScaledTanh:
      return f.alpha * tanh(f.beta * x);
    case kGateHardSigmoid:
      return HardSigmoid(x, f.alpha, f.beta);
    case kGateElu:
      return Elu(x, f.alpha);
    case kGateSoftsign:
      return Softsign(x);
    default:  // kGateSoftplus
      return Softplus(x);
  }
}
FUNCTION float clipped(float limit, float x) { return limit == 0.0f ? x : Clip(x, -limit, limit); }
#define GATE(function, x) gate_function(c.functions[direction][function], clipped(c.clip, x))

FUNCTION int gates_of(int kind) { return kind == kRecurrentRnn ? 1 : kind == kRecurrentGru ? 3 : 4; }

// The place of a unit's state among the layer's arguments. In `scratch` the direction comes first, always.
FUNCTION int place_of_state(Recurrent c, int i) {
  int batch = i / c.hidden % c.batch;
  int direction = i / (c.hidden * c.batch);
  return c.batch_first ? (batch * c.directions + direction) * c.hidden + i % c.hidden : i;
}

KERNEL(recurrent_start)
(GLOBAL const real* state, GLOBAL const real* cell, GLOBAL float* scratch, Recurrent c, int has_state,
 int has_cell, int count) {
  int i = GLOBAL_ID(0);
  if (i >= count) return;
  int at = place_of_state(c, i);
  scratch[i] = has_state ? LOAD(state, at) : 0.0f;
  scratch[2 * count + i] = has_cell ? LOAD(cell, at) : 0.0f;
}

KERNEL(recurrent_end)
(GLOBAL const float* scratch, GLOBAL real* state, GLOBAL real* cell, Recurrent c, int has_cell, int count) {
  int i = GLOBAL_ID(0);
  if (i >= count) return;
  int at = place_of_state(c, i);
  STORE(state, at, scratch[c.steps % 2 * count + i]);
  if (has_cell) STORE(cell, at, scratch[2 * count + i]);
}

// Step `step`. A GRU whose reset gate comes before the product has two parts: the gates z and r, then h.
KERNEL(recurrent_step)
(GLOBAL const real* inputs, GLOBAL const real* r, GLOBAL const real* bias, GLOBAL const real* peepholes,
 GLOBAL const int* lengths, GLOBAL float* scratch, GLOBAL real* y, Recurrent c, int step, int part) {
  SHARED float products[MOST_GATES][UNITS * LANES];
  int thread = LOCAL_ID(0);
  int lane = thread % LANES;
  int count = c.directions * c.batch * c.hidden;
  int i = GROUP_ID(0) * UNITS + thread / LANES;
  int inside = i < count;
  if (!inside) i = 0;
  int unit = i % c.hidden;
  int batch = i / c.hidden % c.batch;
  int direction = i / (c.hidden * c.batch);
  int gates = gates_of(c.kind);
  int in_parts = c.kind == kRecurrentGru && !c.linear_before_reset;
  int first_gate = in_parts && part == 1 ? 2 : 0;
  int some_gates = !in_parts ? gates : part == 0 ? 2 : 1;
  int before = (step % 2) * count;
  int after = count - before;
  GLOBAL const float* states = scratch + (in_parts && part == 1 ? 3 * count : before) + (i - unit);
  int row = ((direction * gates + first_gate) * c.hidden + unit) * c.hidden;
  float sums[MOST_GATES];
  for (int gate = 0; gate < MOST_GATES; ++gate) sums[gate] = 0.0f;
  for (int k = lane; k < c.hidden; k += LANES) {
    float state = states[k];
    for (int gate = 0; gate < MOST_GATES; ++gate) {
      if (gate < some_gates) sums[gate] += state * LOAD(r, row + gate * c.hidden * c.hidden + k);
    }
  }
  for (int gate = 0; gate < MOST_GATES; ++gate) products[gate][thread] = sums[gate];
  BARRIER();
  for (int half_way = LANES / 2; half_way > 0; half_way /= 2) {
    if (lane < half_way) {
      for (int gate = 0; gate < MOST_GATES; ++gate) {
        products[gate][thread] += products[gate][thread + half_way];
      }
    }
    BARRIER();
  }
  if (lane != 0 || !inside) return;
  int length = c.has_lengths ? lengths[batch] : c.steps;
  length = length < 0 ? 0 : length > c.steps ? c.steps : length;
  int active = step < length;
  int time = active && (direction == 1 || c.reversed) ? length - 1 - step : step;
  int of_x = c.batch_first ? batch * c.steps + time : time * c.batch + batch;
  int x_at = (direction * c.steps * c.batch + of_x) * gates * c.hidden + unit;
  float from_state[MOST_GATES];
  float from_input[MOST_GATES];
  for (int gate = 0; gate < MOST_GATES; ++gate) {
    int used = gate < some_gates;
    int at = (first_gate + gate) * c.hidden;
    from_state[gate] = products[gate][thread];
    if (used && c.has_bias)
      from_state[gate] += LOAD(bias, (direction * 2 + 1) * gates * c.hidden + at + unit);
    from_input[gate] = used ? LOAD(inputs, x_at + at) : 0.0f;
  }
  float old = scratch[before + i];
  float state = old;
  if (in_parts && part == 0) {
    scratch[4 * count + i] = GATE(0, from_input[0] + from_state[0]);
    scratch[3 * count + i] = GATE(0, from_input[1] + from_state[1]) * old;
    return;
  }
  if (c.kind == kRecurrentRnn) {
    state = GATE(0, from_input[0] + from_state[0]);
  } else if (in_parts) {
    float update = scratch[4 * count + i];
    state = (1.0f - update) * GATE(1, from_input[0] + from_state[0]) + update * old;
  } else if (c.kind == kRecurrentGru) {
    float update = GATE(0, from_input[0] + from_state[0]);
    float reset = GATE(0, from_input[1] + from_state[1]);
    state = (1.0f - update) * GATE(1, from_input[2] + reset * from_state[2]) + update * old;
  } else if (active) {
    // The gates i, o, f and c; peepholes i, o, f.
    float cell = scratch[2 * count + i];
    float of_input = 0.0f;
    float of_output = 0.0f;
    float of_forget = 0.0f;
    if (c.has_peepholes) {
      int at = direction * 3 * c.hidden + unit;
      of_input = LOAD(peepholes, at);
      of_output = LOAD(peepholes, at + c.hidden);
      of_forget = LOAD(peepholes, at + 2 * c.hidden);
    }
    float input = GATE(0, from_input[0] + from_state[0] + of_input * cell);
    float forget = c.input_forget ? 1.0f - input : GATE(0, from_input[2] + from_state[2] + of_forget * cell);
    cell = forget * cell + input * GATE(1, from_input[3] + from_state[3]);
    scratch[2 * count + i] = cell;
    state = GATE(0, from_input[1] + from_state[1] + of_output * cell) *
            gate_function(c.functions[direction][2], cell);
  }
  if (!active) state = old;
  scratch[after + i] = state;
  if (c.has_y) {
    int of_y = c.batch_first ? (batch * c.steps + time) * c.directions + direction
                             : (time * c.directions + direction) * c.batch + batch;
    STORE(y, of_y * c.hidden + unit, active ? state : 0.0f);
  }
}
