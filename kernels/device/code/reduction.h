// SPDX-License-Identifier: Apache-2.0
// Many elements to one, and elements scaled by statistics of their row. A group of 64 threads does a row of
// contiguous elements. A group of 256 threads does each of few results of many elements. Everything else is
// done by one thread for each result.

#define LANES 64

FUNCTION float start_of(int operation) {
  return operation == kMost      ? -INFINITE
         : operation == kLeast   ? INFINITE
         : operation == kProduct ? 1.0f
                                 : 0.0f;
}
FUNCTION float add_to(int operation, float sum, float x) {
  switch (operation) {
    case kMost:
      return Max(sum, x);
    case kLeast:
      return Min(sum, x);
    case kProduct:
      return sum * x;
    case kSumOfSquares:
    case kNorm:
      return sum + x * x;
    case kSumOfAbs:
      return sum + fabs(x);
    default:
      return sum + x;
  }
}
// Joins two partial results.
FUNCTION float join(int operation, float a, float b) {
  return operation == kMost      ? Max(a, b)
         : operation == kLeast   ? Min(a, b)
         : operation == kProduct ? a * b
                                 : a + b;
}
FUNCTION float end_of(int operation, float sum, int count) {
  return operation == kMean ? sum / (float)count : operation == kNorm ? sqrt(sum) : sum;
}

// All threads of the group call it; `part` has room for LANES and ends with the result at 0.
#define JOIN_LANES(operation, part, lane)                                           \
  {                                                                                 \
    BARRIER();                                                                      \
    for (int step = LANES / 2; step > 0; step /= 2) {                               \
      if (lane < step) part[lane] = join(operation, part[lane], part[lane + step]); \
      BARRIER();                                                                    \
    }                                                                               \
  }

KERNEL(reduce_rows)(GLOBAL const real* x, GLOBAL real* out, int operation, int count) {
  SHARED float part[LANES];
  int lane = LOCAL_ID(0);
  int row = GROUP_ID(0);
  float sum = start_of(operation);
  for (int i = lane; i < count; i += LANES) sum = add_to(operation, sum, LOAD(x, row * count + i));
  part[lane] = sum;
  JOIN_LANES(operation, part, lane);
  if (lane == 0) STORE(out, row, end_of(operation, part[0], count));
}

// The place of element k of those that become one, from the first one on.
FUNCTION int reduced_place(Reduction shape, int k) {
  int at = 0;
  for (int axis = shape.reduced_rank - 1; axis >= 0; --axis) {
    int row = k / shape.reduced_dims[axis];
    at += (k - row * shape.reduced_dims[axis]) * shape.reduced_steps[axis];
    k = row;
  }
  return at;
}

KERNEL(reduce)(GLOBAL const real* x, GLOBAL real* out, Reduction shape, int operation, int count) {
  int i = GLOBAL_ID(0);
  if (i >= count) return;
  int first;
  POSITION_OF(i, shape, shape.steps, first);
  float sum = start_of(operation);
  for (int k = 0; k < shape.count; ++k) {
    sum = add_to(operation, sum, LOAD(x, first + reduced_place(shape, k)));
  }
  STORE(out, i, end_of(operation, sum, shape.count));
}

// Few results of many elements: a group of 256 threads for each.
#define WIDE 256
KERNEL(reduce_wide)(GLOBAL const real* x, GLOBAL real* out, Reduction shape, int operation, int count) {
  SHARED float part[WIDE];
  int lane = LOCAL_ID(0);
  int first;
  POSITION_OF(GROUP_ID(0), shape, shape.steps, first);
  float sum = start_of(operation);
  for (int k = lane; k < shape.count; k += WIDE) {
    sum = add_to(operation, sum, LOAD(x, first + reduced_place(shape, k)));
  }
  part[lane] = sum;
  BARRIER();
  for (int step = WIDE / 2; step > 0; step /= 2) {
    if (lane < step) part[lane] = join(operation, part[lane], part[lane + step]);
    BARRIER();
  }
  if (lane == 0 && GROUP_ID(0) < count) STORE(out, GROUP_ID(0), end_of(operation, part[0], shape.count));
}

// The position of the largest (smallest, with `least`) element of each line; of equal ones the first, or the
// last. NaN counts as the one that is looked for.
KERNEL(arg_reduce)
(GLOBAL const real* x, GLOBAL u8* out, int type, int length, int inner, int least, int last, int count) {
  int i = GLOBAL_ID(0);
  if (i >= count) return;
  int first = i / inner * length * inner + i % inner;
  float best = LOAD(x, first);
  int place = 0;
  for (int k = 1; k < length; ++k) {
    float value = LOAD(x, first + k * inner);
    int better = is_nan(best)
                     ? is_nan(value) && last
                     : is_nan(value) || (least ? value < best : value > best) || (last && value == best);
    if (better) {
      best = value;
      place = k;
    }
  }
  store_wrapped(out, type, i, place);
}

KERNEL(softmax_rows)(GLOBAL const real* x, GLOBAL real* out, int length, int logarithm) {
  SHARED float part[LANES];
  int lane = LOCAL_ID(0);
  int first = GROUP_ID(0) * length;
  float most = -INFINITE;
  for (int i = lane; i < length; i += LANES) most = Max(most, LOAD(x, first + i));
  part[lane] = most;
  JOIN_LANES(kMost, part, lane);
  most = part[0];
  BARRIER();
  float sum = 0.0f;
  for (int i = lane; i < length; i += LANES) sum += exp(LOAD(x, first + i) - most);
  part[lane] = sum;
  JOIN_LANES(kSum, part, lane);
  sum = part[0];
  float lowered = log(sum);
  for (int i = lane; i < length; i += LANES) {
    float shifted = LOAD(x, first + i) - most;
    STORE(out, first + i, logarithm ? shifted - lowered : exp(shifted) / sum);
  }
}

KERNEL(softmax)(GLOBAL const real* x, GLOBAL real* out, int length, int inner, int logarithm, int count) {
  int i = GLOBAL_ID(0);
  if (i >= count) return;
  int first = i / inner * length * inner + i % inner;
  float most = -INFINITE;
  for (int k = 0; k < length; ++k) most = Max(most, LOAD(x, first + k * inner));
  float sum = 0.0f;
  for (int k = 0; k < length; ++k) sum += exp(LOAD(x, first + k * inner) - most);
  float lowered = log(sum);
  for (int k = 0; k < length; ++k) {
    float shifted = LOAD(x, first + k * inner) - most;
    STORE(out, first + k * inner, logarithm ? shifted - lowered : exp(shifted) / sum);
  }
}

// Each row less its mean (with `centered`), over its deviation; times scale, plus bias. Element i of a row
// takes scale[(row % groups) * per_group + i / run]: `run` elements share one.
KERNEL(normalize_rows)
(GLOBAL const real* x, GLOBAL const real* scale, GLOBAL const real* bias, GLOBAL real* out, int length,
 int groups, int per_group, int run, int centered, int has_bias, float epsilon) {
  SHARED float part[LANES];
  int lane = LOCAL_ID(0);
  int row = GROUP_ID(0);
  int first = row * length;
  float mean = 0.0f;
  if (centered) {
    float sum = 0.0f;
    for (int i = lane; i < length; i += LANES) sum += LOAD(x, first + i);
    part[lane] = sum;
    JOIN_LANES(kSum, part, lane);
    mean = part[0] / (float)length;
    BARRIER();
  }
  float squares = 0.0f;
  for (int i = lane; i < length; i += LANES) {
    float d = LOAD(x, first + i) - mean;
    squares += d * d;
  }
  part[lane] = squares;
  JOIN_LANES(kSum, part, lane);
  float factor = 1.0f / sqrt(part[0] / (float)length + epsilon);
  for (int i = lane; i < length; i += LANES) {
    int at = row % groups * per_group + i / run;
    float y = (LOAD(x, first + i) - mean) * factor * LOAD(scale, at);
    if (has_bias) y += LOAD(bias, at);
    STORE(out, first + i, y);
  }
}

KERNEL(batch_norm)
(GLOBAL const real* x, GLOBAL const real* scale, GLOBAL const real* bias, GLOBAL const real* mean,
 GLOBAL const real* variance, GLOBAL real* out, int channels, int inner, float epsilon, int count) {
  int i = GLOBAL_ID(0);
  if (i >= count) return;
  int c = i / inner % channels;
  float factor = LOAD(scale, c) / sqrt(LOAD(variance, c) + epsilon);
  STORE(out, i, (LOAD(x, i) - LOAD(mean, c)) * factor + LOAD(bias, c));
}
