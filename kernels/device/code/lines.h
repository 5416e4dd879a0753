// SPDX-License-Identifier: Apache-2.0
// Work along the lines of an axis, one group of threads for each line: the largest elements, and running
// sums. Elements are integers of `type`, or real numbers for kTypeReal.

#define LANES 64
#define DIGITS 16

// A number that is larger, the earlier an element comes in the result: NaN is above all, and -0 is 0. It has
// as many bits as the type, real numbers have 32.
FUNCTION ulong key_of(GLOBAL const u8* x, int type, int bits, int smallest, int i) {
  ulong every_bit = ~(ulong)0 >> (64 - bits);
  ulong key;
  if (type == kTypeReal) {
    float value = LOAD((GLOBAL const real*)x, i);
    uint word = BITS_OF(value == 0.0f ? 0.0f : value);
    key = is_nan(value) ? every_bit : word >> 31 != 0 ? (ulong)(~word) : (ulong)(word | 0x80000000u);
  } else {
    ulong offset = type == kTypeU8 || type == kTypeU16 ? 0 : (ulong)1 << (bits - 1);
    key = ((ulong)load_integer(x, type, i) + offset) & every_bit;
  }
  return smallest ? ~key & every_bit : key;
}

// Finds the k elements of each line that come first, digit by digit of the last one's key. Of elements equal
// to that one the first are taken. `chosen` gets their positions in the line, in any order.
KERNEL(choose_top)
(GLOBAL const u8* x, GLOBAL int* chosen, int type, int bits, int smallest, int length, int inner, int k) {
  SHARED int counts[DIGITS][LANES];
  SHARED int picked[2];
  int lane = LOCAL_ID(0);
  int row = GROUP_ID(0);
  int first = row / inner * length * inner + row % inner;
  ulong prefix = 0;  // of the k-th key
  int wanted = k;    // elements whose keys begin with it
  for (int shift = bits - 4; shift >= 0; shift -= 4) {
    for (int digit = 0; digit < DIGITS; ++digit) counts[digit][lane] = 0;
    for (int i = lane; i < length; i += LANES) {
      ulong key = key_of(x, type, bits, smallest, first + i * inner) >> shift;
      if (key >> 4 == prefix) ++counts[(int)(key & 15)][lane];
    }
    BARRIER();
    if (lane < DIGITS) {
      int sum = 0;
      for (int other = 0; other < LANES; ++other) sum += counts[lane][other];
      counts[lane][0] = sum;
    }
    BARRIER();
    if (lane == 0) {
      int digit = DIGITS - 1;
      int left = wanted;
      for (; digit > 0 && counts[digit][0] < left; --digit) left -= counts[digit][0];
      picked[0] = digit;
      picked[1] = left;
    }
    BARRIER();
    prefix = prefix << 4 | (ulong)picked[0];
    wanted = picked[1];
  }
  // Each thread takes a stretch of the line, so that the first of equal elements are known.
  int stretch = (length + LANES - 1) / LANES;
  int begin = lane * stretch < length ? lane * stretch : length;
  int end = begin + stretch < length ? begin + stretch : length;
  int above = 0;
  int equal = 0;
  for (int i = begin; i < end; ++i) {
    ulong key = key_of(x, type, bits, smallest, first + i * inner);
    above += key > prefix ? 1 : 0;
    equal += key == prefix ? 1 : 0;
  }
  counts[0][lane] = above;
  counts[1][lane] = equal;
  BARRIER();
  int to = row * k;
  equal = 0;
  for (int other = 0; other < lane; ++other) {
    to += counts[0][other];
    equal += counts[1][other];
  }
  to += equal < wanted ? equal : wanted;
  for (int i = begin; i < end; ++i) {
    ulong key = key_of(x, type, bits, smallest, first + i * inner);
    int taken = key > prefix || (key == prefix && equal < wanted);
    equal += key == prefix ? 1 : 0;
    if (taken) chosen[to++] = i;
  }
}

// Puts the chosen elements in order: each thread finds the place of one.
KERNEL(order_top)
(GLOBAL const u8* x, GLOBAL const int* chosen, GLOBAL u8* values, GLOBAL i64* indices, int type, int bits,
 int smallest, int length, int inner, int k, int count) {
  int i = GLOBAL_ID(0);
  if (i >= count) return;
  int row = i / k;
  int first = row / inner * length * inner + row % inner;
  int own = chosen[i];
  ulong key = key_of(x, type, bits, smallest, first + own * inner);
  int place = 0;
  for (int other = row * k; other < (row + 1) * k; ++other) {
    int position = chosen[other];
    ulong its = key_of(x, type, bits, smallest, first + position * inner);
    place += its > key || (its == key && position < own) ? 1 : 0;
  }
  int to = row / inner * k * inner + row % inner + place * inner;
  if (type == kTypeReal) {
    STORE((GLOBAL real*)values, to, LOAD((GLOBAL const real*)x, first + own * inner));
  } else {
    store_wrapped(values, type, to, load_integer(x, type, first + own * inner));
  }
  indices[to] = own;
}

// A running sum or product. The axis is read from its low word; one that is out of range is held in it. There
// are as many groups as lines along the shortest axis, which are enough for each axis. Each thread takes a
// stretch of the line.
#define RUNNING(name, total_type, load, store)                                                       \
  KERNEL(name)                                                                                       \
  (GLOBAL const u8* x, GLOBAL const int* axis, GLOBAL u8* out, Extents shape, int type, int product, \
   int exclusive, int reverse, int size) {                                                           \
    SHARED total_type part[LANES];                                                                   \
    int lane = LOCAL_ID(0);                                                                          \
    int row = GROUP_ID(0);                                                                           \
    int along = axis[0] < 0 ? axis[0] + shape.rank : axis[0];                                        \
    along = along < 0 ? 0 : along >= shape.rank ? shape.rank - 1 : along;                            \
    int inner = 1;                                                                                   \
    for (int i = along + 1; i < shape.rank; ++i) inner *= shape.dims[i];                             \
    int length = shape.dims[along];                                                                  \
    int first = row / inner * length * inner + row % inner;                                          \
    if (row >= size / length) length = 0;                                                            \
    int stretch = (length + LANES - 1) / LANES;                                                      \
    int begin = lane * stretch < length ? lane * stretch : length;                                   \
    int end = begin + stretch < length ? begin + stretch : length;                                   \
    total_type total = product ? 1 : 0;                                                              \
    for (int i = begin; i < end; ++i) {                                                              \
      int at = first + (reverse ? length - 1 - i : i) * inner;                                       \
      total = product ? total * load : total + load;                                                 \
    }                                                                                                \
    part[lane] = total;                                                                              \
    BARRIER();                                                                                       \
    total = product ? 1 : 0;                                                                         \
    for (int i = 0; i < lane; ++i) total = product ? total * part[i] : total + part[i];              \
    for (int i = begin; i < end; ++i) {                                                              \
      int at = first + (reverse ? length - 1 - i : i) * inner;                                       \
      total_type before = total;                                                                     \
      total = product ? total * load : total + load;                                                 \
      total_type value = exclusive ? before : total;                                                 \
      store;                                                                                         \
    }                                                                                                \
  }

RUNNING(running_reals, float, LOAD((GLOBAL const real*)x, at), STORE((GLOBAL real*)out, at, value))
RUNNING(running_integers, ulong, (ulong)load_integer(x, type, at), store_wrapped(out, type, at, (i64)value))
