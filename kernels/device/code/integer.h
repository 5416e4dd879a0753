// SPDX-License-Identifier: Apache-2.0
// Integers and bools: each element by itself, and many to one. The type and the operation are arguments, the
// same for all threads.

#define LANES 64
#define WRAPPED(a, how, b) ((i64)((ulong)(a)how(ulong)(b)))

// Functions of scalar_functions.h, of i64.
FUNCTION i64 held_from(i64 x, i64 low) { return x < low ? low : x; }
FUNCTION i64 held_to(i64 x, i64 high) { return high < x ? high : x; }
#define NUMBER(c) ((i64)(c))
#define NEG(a) WRAPPED(0, -, a)
#define ABS(a) ((a) < 0 ? NEG(a) : (a))
#define MUL(a, b) WRAPPED(a, *, b)
#define IS_NAN(a) 0
#define AT_LEAST(x, low) held_from(x, low)
#define AT_MOST(x, high) held_to(x, high)
#define OF_ONE(name, x, ...) \
  FUNCTION i64 Integer##name(i64 x) { return __VA_ARGS__; }
#define OF_TWO(name, x, y, ...) \
  FUNCTION i64 Integer##name(i64 x, i64 y) { return __VA_ARGS__; }
#define OF_THREE(name, x, y, z, ...) \
  FUNCTION i64 Integer##name(i64 x, i64 y, i64 z) { return __VA_ARGS__; }
REWIRE_FUNCTIONS_OF_NUMBERS(OF_ONE, OF_TWO, OF_THREE)

FUNCTION i64 apply_unary(int operation, i64 x, i64 low, i64 high) {
  switch (operation) {
    case kIntegerAbs:
      return IntegerAbs(x);
    case kIntegerNegate:
      return IntegerNeg(x);
    case kIntegerSign:
      return IntegerSign(x);
    case kIntegerRelu:
      return IntegerRelu(x);
    case kIntegerClip:
      return IntegerClip(x, low, high);
    case kBitNot:
      return ~x;
    default:  // kNot
      return x == 0 ? 1 : 0;
  }
}

FUNCTION i64 power_of(i64 base, i64 exponent) {
  ulong result = 1;
  ulong square = (ulong)base;
  if (exponent < 0) return base == 1 || (base == -1 && (exponent & 1) == 0) ? 1 : base == -1 ? -1 : 0;
  for (; exponent != 0; exponent >>= 1) {
    if ((exponent & 1) != 0) result *= square;
    square *= square;
  }
  return (i64)result;
}
FUNCTION i64 remainder_of(i64 a, i64 b) { return b == 0 || b == -1 ? 0 : a % b; }

FUNCTION i64 apply_binary(int operation, i64 a, i64 b) {
  switch (operation) {
    case kAdd:
      return WRAPPED(a, +, b);
    case kSubtract:
      return WRAPPED(a, -, b);
    case kMultiply:
      return WRAPPED(a, *, b);
    case kDivide:
      return b == 0 ? 0 : b == -1 ? WRAPPED(0, -, a) : a / b;
    case kModulo: {
      i64 rest = remainder_of(a, b);
      return rest != 0 && (rest ^ b) < 0 ? rest + b : rest;
    }
    case kRemainder:
      return remainder_of(a, b);
    case kPower:
      return power_of(a, b);
    case kMaximum:
      return IntegerMax(a, b);
    case kMinimum:
      return IntegerMin(a, b);
    case kAtLeast:
      return IntegerAtLeast(a, b);
    case kAtMost:
      return IntegerAtMost(a, b);
    case kPRelu:
      return IntegerPRelu(a, b);
    case kAnd:
      return a & b;
    case kOr:
      return a | b;
    default:  // kXor
      return a ^ b;
  }
}

KERNEL(integer_unary)
(GLOBAL const u8* x, GLOBAL u8* out, int type, int operation, i64 low, i64 high, int count) {
  int i = GLOBAL_ID(0);
  if (i < count) store_wrapped(out, type, i, apply_unary(operation, load_integer(x, type, i), low, high));
}

KERNEL(integer_binary)
(GLOBAL const u8* a, GLOBAL const u8* b, GLOBAL u8* out, Broadcast shape, int type, int operation,
 int count) {
  int i = GLOBAL_ID(0);
  if (i >= count) return;
  int at_a;
  int at_b;
  POSITION_OF(i, shape, shape.a, at_a);
  POSITION_OF(i, shape, shape.b, at_b);
  store_wrapped(out, type, i,
                apply_binary(operation, load_integer(a, type, at_a), load_integer(b, type, at_b)));
}

KERNEL(integer_compare)
(GLOBAL const u8* a, GLOBAL const u8* b, GLOBAL u8* out, Broadcast shape, int type, int comparison,
 int count) {
  int i = GLOBAL_ID(0);
  if (i >= count) return;
  int at_a;
  int at_b;
  POSITION_OF(i, shape, shape.a, at_a);
  POSITION_OF(i, shape, shape.b, at_b);
  i64 x = load_integer(a, type, at_a);
  i64 y = load_integer(b, type, at_b);
  int holds = comparison == kEqual         ? x == y
              : comparison == kNotEqual    ? x != y
              : comparison == kLess        ? x < y
              : comparison == kLessOrEqual ? x <= y
              : comparison == kGreater     ? x > y
                                           : x >= y;
  out[i] = holds ? 1 : 0;
}

KERNEL(integer_cast)(GLOBAL const u8* x, GLOBAL u8* out, int from, int to, int count) {
  int i = GLOBAL_ID(0);
  if (i < count) store_wrapped(out, to, i, load_integer(x, from, i));
}

// A partial result with one more element, and with another partial result.
FUNCTION i64 add_to(int operation, i64 sum, i64 x) {
  switch (operation) {
    case kMost:
      return x > sum ? x : sum;
    case kLeast:
      return x < sum ? x : sum;
    case kProduct:
      return WRAPPED(sum, *, x);
    case kSumOfSquares:
      return WRAPPED(sum, +, WRAPPED(x, *, x));
    case kSumOfAbs:
      return WRAPPED(sum, +, x < 0 ? WRAPPED(0, -, x) : x);
    default:  // kSum, kMean
      return WRAPPED(sum, +, x);
  }
}
FUNCTION i64 join(int operation, i64 a, i64 b) {
  return add_to(operation == kSumOfSquares || operation == kSumOfAbs ? kSum : operation, a, b);
}
// A mean is that of the sum in the type's bits. It is truncated; 0 of nothing.
FUNCTION void store_result(GLOBAL u8* out, int type, int operation, int i, i64 sum, int count) {
  store_wrapped(out, type, i, sum);
  if (operation == kMean) {
    store_wrapped(out, type, i, count == 0 ? 0 : load_integer(out, type, i) / count);
  }
}

KERNEL(integer_reduce_rows)
(GLOBAL const u8* x, GLOBAL u8* out, int type, int operation, i64 start, int count) {
  SHARED i64 part[LANES];
  int lane = LOCAL_ID(0);
  int row = GROUP_ID(0);
  i64 sum = start;
  for (int i = lane; i < count; i += LANES)
    sum = add_to(operation, sum, load_integer(x, type, row * count + i));
  part[lane] = sum;
  BARRIER();
  for (int step = LANES / 2; step > 0; step /= 2) {
    if (lane < step) part[lane] = join(operation, part[lane], part[lane + step]);
    BARRIER();
  }
  if (lane == 0) store_result(out, type, operation, row, part[0], count);
}

KERNEL(integer_reduce)
(GLOBAL const u8* x, GLOBAL u8* out, Reduction shape, int type, int operation, i64 start, int count) {
  int i = GLOBAL_ID(0);
  if (i >= count) return;
  int first;
  POSITION_OF(i, shape, shape.steps, first);
  i64 sum = start;
  for (int k = 0; k < shape.count; ++k) {
    int at = first;
    int rest = k;
    for (int axis = shape.reduced_rank - 1; axis >= 0; --axis) {
      int row = rest / shape.reduced_dims[axis];
      at += (rest - row * shape.reduced_dims[axis]) * shape.reduced_steps[axis];
      rest = row;
    }
    sum = add_to(operation, sum, load_integer(x, type, at));
  }
  store_result(out, type, operation, i, sum, shape.count);
}

// As arg_reduce of real numbers.
KERNEL(integer_arg_reduce)
(GLOBAL const u8* x, GLOBAL u8* out, int x_type, int type, int length, int inner, int least, int last,
 int count) {
  int i = GLOBAL_ID(0);
  if (i >= count) return;
  int first = i / inner * length * inner + i % inner;
  i64 best = load_integer(x, x_type, first);
  int place = 0;
  for (int k = 1; k < length; ++k) {
    i64 value = load_integer(x, x_type, first + k * inner);
    if ((least ? value < best : value > best) || (last && value == best)) {
      best = value;
      place = k;
    }
  }
  store_wrapped(out, type, i, place);
}
