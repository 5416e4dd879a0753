// SPDX-License-Identifier: Apache-2.0
//
// Functions of one number, as the stock kernels compute them on vectors: the formulas of
// kernels/contract/scalar_functions.h, and those polynomials of kernels/cpu/math/vector_functions-inl.h that
// take the place of a math library's functions. Where the CPU multiplies and adds in one instruction, results
// are those of the stock kernels to the bit. log, sin, cos, expm1 and log1p are the math library's.
#ifndef REWIRE_EMBEDDED_FUNCTIONS_H_
#define REWIRE_EMBEDDED_FUNCTIONS_H_

#include "rewire/kernels/embedded/internal.h"

#include "rewire/kernels/contract/scalar_functions.h"

#define REWIRE_EMBEDDED_TERMS(terms) ((int)(sizeof(terms) / sizeof((terms)[0])))

static inline float rewire_embedded_polynomial(float x, const float* terms, int count) {
  float sum = terms[count - 1];
  for (int i = count - 1; i-- > 0;) sum = REWIRE_EMBEDDED_MUL_ADD(sum, x, terms[i]);
  return sum;
}

// exp(x) = power * 2^n, with n in the exponent's bits. The name says for which x no infinity is needed.
static inline float rewire_embedded_exp_up_to_0(float x) {
  static const float terms[] = {4.99999940e-01f, 1.66665211e-01f, 4.16683927e-02f, 8.36874545e-03f,
                                1.38145348e-03f};
  const float shift = 12582912.0F;  // 1.5 * 2^23
  const float shifted = REWIRE_EMBEDDED_MUL_ADD(x, 1.44269504F, shift);
  const float n = shifted - shift;
  const float most = REWIRE_EMBEDDED_MUL_ADD(-n, 0.693359375F, x);
  const float rest = REWIRE_EMBEDDED_MUL_ADD(-n, -2.12194440e-4F, most);
  const float polynomial = rewire_embedded_polynomial(rest, terms, REWIRE_EMBEDDED_TERMS(terms));
  const float power = REWIRE_EMBEDDED_MUL_ADD(rest * rest, polynomial, rest) + 1.0F;
  if (!(x >= -87.33654F)) return x != x ? x : 0;
  return rewire_embedded_float_of(rewire_embedded_bits(power) + (rewire_embedded_bits(shifted) << 23));
}

static inline float rewire_embedded_exp(float x) {
  return x > 88.72283F ? INFINITY : rewire_embedded_exp_up_to_0(x);
}

// x, brought to at most `limit` of either sign. NaN stays.
static inline float rewire_embedded_held(float x, float limit) {
  return fabsf(x) > limit ? copysignf(limit, x) : x;
}

// tanh(x) up to 9, where it is 1 in floats, as a dividend; *divisor is what divides it.
static inline float rewire_embedded_tanh_fraction(float x, float* divisor) {
  static const float above[] = {9.99999941e-01f, 1.29192406e-01f,  2.92077469e-03f,
                                9.26753277e-06f, -1.27807504e-08f, 1.82559589e-11f};
  static const float below[] = {1.0f, 4.62525245e-01f, 2.37632219e-02f, 2.28101942e-04f};
  const float held = rewire_embedded_held(x, 9.0F), square = held * held;
  *divisor = rewire_embedded_polynomial(square, below, REWIRE_EMBEDDED_TERMS(below));
  return held * rewire_embedded_polynomial(square, above, REWIRE_EMBEDDED_TERMS(above));
}

static inline float rewire_embedded_tanh(float x) {
  float divisor;
  const float dividend = rewire_embedded_tanh_fraction(x, &divisor);
  return rewire_embedded_held(dividend / divisor, 1.0F);
}

// erf(x) where it is added to 1.
static inline float rewire_embedded_erf_as_term(float x) {
  static const float above[] = {1.128379104e+00f, 2.025697808e-01f,  5.092147775e-02f, 3.807248023e-03f,
                                1.437925904e-04f, -1.950792302e-06f, 1.960338436e-08f};
  static const float below[] = {1.0f, 5.128543091e-01f, 1.160890402e-01f, 1.457458583e-02f, 9.796940171e-04f};
  if (fabsf(x) > 3.95F) return copysignf(1.0F, x);
  const float square = x * x;
  const float dividend = x * rewire_embedded_polynomial(square, above, REWIRE_EMBEDDED_TERMS(above));
  return rewire_embedded_held(
      dividend / rewire_embedded_polynomial(square, below, REWIRE_EMBEDDED_TERMS(below)), 1.0F);
}

// exp(x) - 1 in the range in which it is finite and not -1.
static inline float rewire_embedded_expm1(float x) {
  return expm1f(x < -100.0F ? -100.0F : x > 104.0F ? 104.0F : x);
}

#define NUMBER(c) ((float)(c))
#define ADD(a, b) ((a) + (b))
#define SUB(a, b) ((a) - (b))
#define MUL(a, b) ((a) * (b))
#define DIV(a, b) ((a) / (b))
#define NEG(a) (-(a))
#define ABS(a) fabsf(a)
#define PRODUCT(a, b) rewire_embedded_rounded_product(a, b)
#define MUL_ADD(a, b, c) REWIRE_EMBEDDED_MUL_ADD(a, b, c)
#define LESS(a, b) ((a) < (b))
#define IS_NAN(a) ((a) != (a))
#define EITHER(p, q) ((p) || (q))
#define SELECT(p, a, b) ((p) ? (a) : (b))
#define AT_LEAST(x, low) rewire_embedded_raised(x, low)
#define AT_MOST(x, high) rewire_embedded_lowered(x, high)
#define EXP(a) rewire_embedded_exp(a)
#define EXPM1(a) rewire_embedded_expm1(a)
#define LOG1P(a) log1pf(a)
#define TANH(a) rewire_embedded_tanh(a)
#define ERF(a) rewire_embedded_erf_as_term(a)
#define CALL(name, ...) rewire_embedded_##name(__VA_ARGS__)
#define REWIRE_EMBEDDED_OF_ONE(name, x, ...) \
  static inline float rewire_embedded_##name(float x) { return __VA_ARGS__; }
#define REWIRE_EMBEDDED_OF_TWO(name, x, y, ...) \
  static inline float rewire_embedded_##name(float x, float y) { return __VA_ARGS__; }
#define REWIRE_EMBEDDED_OF_THREE(name, x, y, z, ...) \
  static inline float rewire_embedded_##name(float x, float y, float z) { return __VA_ARGS__; }

static inline float rewire_embedded_raised(float x, float low) { return x < low ? low : x; }
static inline float rewire_embedded_lowered(float x, float high) { return high < x ? high : x; }

// rewire_embedded_Relu(x) and so on.
REWIRE_FUNCTIONS_OF_NUMBERS(REWIRE_EMBEDDED_OF_ONE, REWIRE_EMBEDDED_OF_TWO, REWIRE_EMBEDDED_OF_THREE)
REWIRE_FUNCTIONS_OF_REALS(REWIRE_EMBEDDED_OF_ONE, REWIRE_EMBEDDED_OF_TWO, REWIRE_EMBEDDED_OF_THREE)

// The other operations of rewire.fused (kernels/contract/fused_operations.h), by their names there. Truth
// values are 1 and 0.
static inline float rewire_embedded_Add(float a, float b) { return a + b; }
static inline float rewire_embedded_Sub(float a, float b) { return a - b; }
static inline float rewire_embedded_Mul(float a, float b) { return rewire_embedded_rounded_product(a, b); }
static inline float rewire_embedded_Div(float a, float b) { return a / b; }
static inline float rewire_embedded_Equal(float a, float b) { return a == b ? 1.0F : 0.0F; }
static inline float rewire_embedded_NotEqual(float a, float b) { return a != b ? 1.0F : 0.0F; }
static inline float rewire_embedded_Less(float a, float b) { return a < b ? 1.0F : 0.0F; }
static inline float rewire_embedded_LessEqual(float a, float b) { return a <= b ? 1.0F : 0.0F; }
static inline float rewire_embedded_And(float a, float b) { return a != 0 && b != 0 ? 1.0F : 0.0F; }
static inline float rewire_embedded_Or(float a, float b) { return a != 0 || b != 0 ? 1.0F : 0.0F; }
static inline float rewire_embedded_Not(float x) { return x == 0 ? 1.0F : 0.0F; }
static inline float rewire_embedded_Where(float c, float a, float b) { return c != 0 ? a : b; }
static inline float rewire_embedded_Round(float x) { return rintf(x); }
static inline float rewire_embedded_Floor(float x) { return floorf(x); }
static inline float rewire_embedded_Ceil(float x) { return ceilf(x); }
static inline float rewire_embedded_Sqrt(float x) { return sqrtf(x); }
static inline float rewire_embedded_Exp(float x) { return rewire_embedded_exp(x); }
static inline float rewire_embedded_Log(float x) { return logf(x); }
static inline float rewire_embedded_Sin(float x) { return sinf(x); }
static inline float rewire_embedded_Cos(float x) { return cosf(x); }
static inline float rewire_embedded_Tanh(float x) { return rewire_embedded_tanh(x); }
static inline float rewire_embedded_Erf(float x) { return erff(x); }
static inline float rewire_embedded_Dequantize(float x, float scale, float zero) {
  return rewire_embedded_rounded_product(x - zero, scale);
}
static inline float rewire_embedded_Quantize(float x, float scale, float zero) {
  return rintf(x / scale) + zero;
}

#undef NUMBER
#undef ADD
#undef SUB
#undef MUL
#undef DIV
#undef NEG
#undef ABS
#undef PRODUCT
#undef MUL_ADD
#undef LESS
#undef IS_NAN
#undef EITHER
#undef SELECT
#undef AT_LEAST
#undef AT_MOST
#undef EXP
#undef EXPM1
#undef LOG1P
#undef TANH
#undef ERF
#undef CALL
#undef REWIRE_EMBEDDED_OF_ONE
#undef REWIRE_EMBEDDED_OF_TWO
#undef REWIRE_EMBEDDED_OF_THREE

#endif  // REWIRE_EMBEDDED_FUNCTIONS_H_
