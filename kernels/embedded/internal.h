// SPDX-License-Identifier: Apache-2.0
//
// Definitions that several kernels of this folder share. Programs do not include them.
#ifndef REWIRE_EMBEDDED_INTERNAL_H_
#define REWIRE_EMBEDDED_INTERNAL_H_

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "rewire/kernels/embedded/rewire_embedded.h"

// a * b + c as the stock kernels compute it: rounded once where the CPU does that in one instruction, or
// where the build asks for it by REWIRE_EMBEDDED_FUSED_MULTIPLY_ADD.
#if defined(__FP_FAST_FMAF) || defined(REWIRE_EMBEDDED_FUSED_MULTIPLY_ADD)
#define REWIRE_EMBEDDED_MUL_ADD(a, b, c) fmaf(a, b, c)
#else
#define REWIRE_EMBEDDED_MUL_ADD(a, b, c) ((a) * (b) + (c))
#endif

// A product that is rounded before something is added to it. Compilers would make one operation of both,
// where the CPU has one.
static inline float rewire_embedded_rounded_product(float a, float b) {
#if defined(__FP_FAST_FMAF)
  const volatile float product = a * b;
  return product;
#else
  return a * b;
#endif
}

static inline uint32_t rewire_embedded_bits(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof(bits));
  return bits;
}

static inline float rewire_embedded_float_of(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof(value));
  return value;
}

// The value rounded to the nearest and even integer, plus `zero`, held in [least, most]; NaN gives least. A
// number is added that leaves no room for fractions, so that no instruction for rounding is needed.
static inline int32_t rewire_embedded_rounded(float value, float zero, float least, float most) {
  const float no_fractions = 12582912.0F;  // 1.5 * 2^23: the last bit of such numbers is worth 1
  const float low = least - zero, high = most - zero;
  value = value > low ? value : low;
  value = value < high ? value : high;
  return (int32_t)(rewire_embedded_bits(value + no_fractions) - rewire_embedded_bits(no_fractions - zero));
}

// The range of taps for which the window of output position o lies inside the input: first >= last if there
// are none. Returns the input's position under the first one.
int32_t rewire_embedded_inside(const struct rewire_embedded_axis* axis, int32_t o, int32_t* first,
                               int32_t* last);

// The part of a window that lies inside the image, at one output position: `taps` positions of `channels`
// numbers in each of `rows` rows. Steps count elements of x; w_first and w_row_step count what is skipped of
// the packed weights, of which each tap has `channels`.
struct rewire_embedded_covered {
  int32_t at, rows, row_step, taps, tap_step, channels;
  int32_t w_first, w_row_step;
};
void rewire_embedded_cover(const struct rewire_embedded_axis* rows,
                           const struct rewire_embedded_axis* columns, int32_t channels, int32_t image,
                           int32_t y, int32_t x, struct rewire_embedded_covered* covered);

// One row of a product by packed weights of `depth` units: out [columns].
void rewire_embedded_panels_f32(const struct rewire_embedded_covered* covered, const float* x, const float* w,
                                int32_t depth, int32_t columns, const float* bias, const float* addend,
                                const struct rewire_embedded_activation* activation, float* out);

// All channels of a depthwise convolution at one output position.
void rewire_embedded_depthwise_f32(const struct rewire_embedded_covered* covered, const float* x,
                                   const float* w, int32_t multiplier, const float* bias,
                                   const struct rewire_embedded_activation* activation, float* out);

// The operands that all rows of an integer product share.
struct rewire_embedded_integer_product {
  const struct rewire_embedded_integer_finish* finish;
  const int8_t *w, *w_zero;
  const float* scale;
  const int32_t* whole_bias;
  const float* bias;
  int32_t depth, columns;  // depth: padded
};
// One row: elements `at` to at + columns of out. x has `depth` bytes of either sign less their zero, and is
// changed.
void rewire_embedded_integer_panels(const struct rewire_embedded_integer_product* product, int16_t* x,
                                    void* out, int32_t at);

// The mean of a row, and one over its standard deviation.
void rewire_embedded_spread(const float* x, int32_t count, float epsilon, float* center, float* factor);

// Runs the list of activations.
static inline void rewire_embedded_activate(const struct rewire_embedded_activation* activation,
                                            float* values, int32_t count) {
  for (; activation != NULL; activation = activation->next) activation->apply(activation, values, count);
}

// x_zero as what is subtracted from a byte of x whose sign bit is inverted if x is signed.
static inline int32_t rewire_embedded_zero_of(int32_t x_is_signed, const void* x_zero) {
  if (x_zero == NULL) return x_is_signed ? 128 : 0;
  return x_is_signed ? *(const int8_t*)x_zero + 128 : *(const uint8_t*)x_zero;
}

#endif  // REWIRE_EMBEDDED_INTERNAL_H_
