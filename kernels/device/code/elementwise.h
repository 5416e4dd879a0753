// SPDX-License-Identifier: Apache-2.0
// Each element by itself. One kernel serves all operations of a form, so that little has to be compiled: the
// operation is an argument, the same for all threads.

FUNCTION float apply_unary(int operation, float x, float p, float q) {
  switch (operation) {
    case kAbs:
      return Abs(x);
    case kCeil:
      return ceil(x);
    case kClip:
      return Clip(x, p, q);
    case kCos:
      return cos(x);
    case kElu:
      return Elu(x, p);
    case kErf:
      return erf(x);
    case kExp:
      return exp(x);
    case kFloor:
      return floor(x);
    case kGelu:
      return Gelu(x);
    case kGeluTanh:
      return GeluTanh(x);
    case kHardSigmoid:
      return HardSigmoid(x, p, q);
    case kHardSwish:
      return HardSwish(x);
    case kLeakyRelu:
      return PRelu(x, p);
    case kLog:
      return log(x);
    case kNegate:
      return Neg(x);
    case kReciprocal:
      return Reciprocal(x);
    case kRelu:
      return Relu(x);
    case kRound:
      return rint(x);
    case kSelu:
      return Selu(x, p, q);
    case kSigmoid:
      return Sigmoid(x);
    case kSign:
      return Sign(x);
    case kSin:
      return sin(x);
    case kSoftplus:
      return Softplus(x);
    case kSqrt:
      return sqrt(x);
    case kSwish:
      return Swish(x);
    default:
      return tanh(x);
  }
}

FUNCTION float apply_binary(int operation, float a, float b) {
  switch (operation) {
    case kAdd:
      return a + b;
    case kSubtract:
      return a - b;
    case kMultiply:
      return a * b;
    case kDivide:
      return a / b;
    case kModulo: {
      float rest = fmod(a, b);
      return rest != 0.0f && (rest < 0.0f) != (b < 0.0f) ? rest + b : rest;
    }
    case kRemainder:
      return fmod(a, b);
    case kPower:
      return pow(a, b);
    case kMaximum:
      return Max(a, b);
    case kMinimum:
      return Min(a, b);
    case kAtLeast:
      return AtLeast(a, b);
    case kAtMost:
      return AtMost(a, b);
    default:  // kPRelu
      return PRelu(a, b);
  }
}

KERNEL(unary)(GLOBAL const real* x, GLOBAL real* out, int operation, float p, float q, int count) {
  int i = GLOBAL_ID(0);
  if (i < count) STORE(out, i, apply_unary(operation, LOAD(x, i), p, q));
}

KERNEL(binary)
(GLOBAL const real* a, GLOBAL const real* b, GLOBAL real* out, Broadcast shape, int operation, int count) {
  int i = GLOBAL_ID(0);
  if (i >= count) return;
  int at_a;
  int at_b;
  POSITION_OF(i, shape, shape.a, at_a);
  POSITION_OF(i, shape, shape.b, at_b);
  STORE(out, i, apply_binary(operation, LOAD(a, at_a), LOAD(b, at_b)));
}

KERNEL(compare)
(GLOBAL const real* a, GLOBAL const real* b, GLOBAL u8* out, Broadcast shape, int comparison, int count) {
  int i = GLOBAL_ID(0);
  if (i >= count) return;
  int at_a;
  int at_b;
  POSITION_OF(i, shape, shape.a, at_a);
  POSITION_OF(i, shape, shape.b, at_b);
  float x = LOAD(a, at_a);
  float y = LOAD(b, at_b);
  int holds = comparison == kEqual         ? x == y
              : comparison == kNotEqual    ? x != y
              : comparison == kLess        ? x < y
              : comparison == kLessOrEqual ? x <= y
              : comparison == kGreater     ? x > y
                                           : x >= y;
  out[i] = holds ? 1 : 0;
}

// Whether x is infinite, of the signs asked for, or NaN.
KERNEL(classify)(GLOBAL const real* x, GLOBAL u8* out, int positive, int negative, int nan, int count) {
  int i = GLOBAL_ID(0);
  if (i >= count) return;
  float value = LOAD(x, i);
  out[i] =
      (positive && value == INFINITE) || (negative && value == -INFINITE) || (nan && is_nan(value)) ? 1 : 0;
}

// Between real numbers and what has a value of its own: integers and bools.
KERNEL(real_to_integer)(GLOBAL const real* x, GLOBAL u8* out, int type, i64 least, i64 most, int count) {
  int i = GLOBAL_ID(0);
  if (i >= count) return;
  float value = LOAD(x, i);
  // The limits may be rounded up to a number just out of range.
  i64 held = is_nan(value) ? 0 : value <= (float)least ? least : value >= (float)most ? most : (i64)value;
  store_wrapped(out, type, i, type == kTypeBool ? value != 0.0f : held);
}
KERNEL(integer_to_real)(GLOBAL const u8* x, GLOBAL real* out, int type, int count) {
  int i = GLOBAL_ID(0);
  if (i < count) STORE(out, i, (float)load_integer(x, type, i));
}
KERNEL(real_to_f32)(GLOBAL const real* x, GLOBAL float* out, int count) {
  int i = GLOBAL_ID(0);
  if (i < count) out[i] = LOAD(x, i);
}
KERNEL(f32_to_real)(GLOBAL const float* x, GLOBAL real* out, int count) {
  int i = GLOBAL_ID(0);
  if (i < count) STORE(out, i, x[i]);
}
