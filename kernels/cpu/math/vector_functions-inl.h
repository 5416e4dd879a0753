// SPDX-License-Identifier: Apache-2.0
// Functions of a vector of floats, for files that Highway compiles once for each instruction set: included by
// them behind foreach_target.h, and as often as they are.
//
// Highway's own functions have ranges; what lies outside of them is put right here. The names end in Of since
// Highway's would be found too.
#if defined(REWIRE_KERNELS_CPU_VECTOR_FUNCTIONS_) == defined(HWY_TARGET_TOGGLE)
#ifdef REWIRE_KERNELS_CPU_VECTOR_FUNCTIONS_
#undef REWIRE_KERNELS_CPU_VECTOR_FUNCTIONS_
#else
#define REWIRE_KERNELS_CPU_VECTOR_FUNCTIONS_
#endif

#include <hwy/highway.h>

#include <cmath>

#include <hwy/contrib/math/math-inl.h>

#include "rewire/kernels/contract/scalar_functions.h"

HWY_BEFORE_NAMESPACE();
namespace rewire::kernel::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <class D, class V, std::size_t kTerms>
HWY_INLINE V Polynomial(D d, V x, const float (&terms)[kTerms]) {
  V sum = hn::Set(d, terms[kTerms - 1]);
  for (std::size_t i = kTerms - 1; i-- > 0;) sum = hn::MulAdd(sum, x, hn::Set(d, terms[i]));
  return sum;
}

// The bound where x is beyond it, else x. The instructions of x86 give their second operand if one is NaN,
// and if both are zeros.
template <class V>
HWY_INLINE V AtLeast(V x, V low) {
#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
  return hn::Max(low, x);
#else
  return hn::IfThenElse(hn::Lt(x, low), low, x);
#endif
}
template <class V>
HWY_INLINE V AtMost(V x, V high) {
#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
  return hn::Min(high, x);
#else
  return hn::IfThenElse(hn::Lt(high, x), high, x);
#endif
}

// The ends of what exp(x) is a normal float for.
constexpr float kLeastExponent = -87.33654f;
constexpr float kMostExponent = 88.72283f;

// exp(x) = power * 2^n for x in that range, with n in the exponent's bits. To round n, a number is added that
// is so large that its last bit is worth 1. exp of the rest, which is at most ln(2) / 2, is 1 + rest + rest^2
// times a polynomial with an error below 4e-9.
//
// This is what is added to 1: exp(x) = (1 + tail) * 2^n.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V ExpTail(D d, V x, hn::Vec<hn::RebindToSigned<D>>* exponent) {
  static constexpr float kTerms[] = {4.99999940e-01f, 1.66665211e-01f, 4.16683927e-02f, 8.36874545e-03f,
                                     1.38145348e-03f};
  const hn::RebindToSigned<D> bits;
  const V shift = hn::Set(d, 12582912.0f);  // 1.5 * 2^23
  const V shifted = hn::MulAdd(x, hn::Set(d, 1.44269504f), shift);
  const V n = hn::Sub(shifted, shift);
  *exponent = hn::ShiftLeft<23>(hn::BitCast(bits, shifted));
  // ln(2) in two parts, the first of so few digits that its products are exact.
  const V most = hn::NegMulAdd(n, hn::Set(d, 0.693359375f), x);
  const V rest = hn::NegMulAdd(n, hn::Set(d, -2.12194440e-4f), most);
  return hn::MulAdd(hn::Mul(rest, rest), Polynomial(d, rest, kTerms), rest);
}
template <class D, class V = hn::Vec<D>>
HWY_INLINE V ExpParts(D d, V x, hn::Vec<hn::RebindToSigned<D>>* exponent) {
  return hn::Add(ExpTail(d, x, exponent), hn::Set(d, 1.0f));
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V ExpOf(D d, V x) {
  const hn::RebindToSigned<D> bits;
  hn::Vec<hn::RebindToSigned<D>> exponent;
  const V power = ExpParts(d, x, &exponent);
  const V scaled = hn::BitCast(d, hn::Add(hn::BitCast(bits, power), exponent));
  const V from_below = hn::IfThenElseZero(hn::Ge(x, hn::Set(d, kLeastExponent)), scaled);
  const V finite = hn::IfThenElse(hn::Gt(x, hn::Set(d, kMostExponent)), hn::Inf(d), from_below);
  return hn::IfThenElse(hn::IsNaN(x), x, finite);
}

// exp(x) for x between kLeastExponent and 88, or NaN: multiplied, since NaN stays NaN by that.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V ExpOfModerate(D d, V x) {
  const hn::RebindToSigned<D> bits;
  hn::Vec<hn::RebindToSigned<D>> exponent;
  const V power = ExpParts(d, x, &exponent);
  const V one = hn::Set(d, 1.0f);
  return hn::Mul(power, hn::BitCast(d, hn::Add(hn::BitCast(bits, one), exponent)));
}

// exp(x) for x of at most 88, or NaN.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V ExpOfLow(D d, V x) {
  return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, kLeastExponent)), ExpOfModerate(d, x));
}

// 2^x for x of at most 1/2, fitted to a relative error of 1.1e-7 with 2^0 = 1: a share of all is exactly 1,
// and its logarithm 0.
constexpr float kPowerOf2Terms[] = {
    1.0f, 6.93146978e-01f, 2.40222421e-01f, 5.55073374e-02f, 9.67151264e-03f, 1.32647271e-03f};

// 2^x for x of at most 127, or NaN; 0 where that is less than a normal float.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V PowerOf2(D d, V x) {
  const hn::RebindToSigned<D> bits;
  const V shift = hn::Set(d, 12582912.0f), one = hn::Set(d, 1.0f);  // as in ExpParts
  const V shifted = hn::Add(x, shift);
  const V power = Polynomial(d, hn::Sub(x, hn::Sub(shifted, shift)), kPowerOf2Terms);
  const auto exponent = hn::ShiftLeft<23>(hn::BitCast(bits, shifted));
  const V scaled = hn::Mul(power, hn::BitCast(d, hn::Add(hn::BitCast(bits, one), exponent)));
  return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, -126.0f)), scaled);
}

// exp(x) as a term of a sum that has a term of 1: x is at most 0, and what is too small to count is brought
// to exp(-85). One multiplication by 1 / ln(2) makes the relative error grow with -x, but exp(x) falls
// faster.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V ExpAsTerm(D d, V x) {
  const hn::RebindToSigned<D> bits;
  const V shift = hn::Set(d, 12582912.0f);  // as in ExpParts
  const V to_base_2 = hn::Set(d, 1.44269504f);
  const V held = hn::Max(x, hn::Set(d, -85.0f));
  const V shifted = hn::MulAdd(held, to_base_2, shift);
  const V power = Polynomial(d, hn::MulSub(held, to_base_2, hn::Sub(shifted, shift)), kPowerOf2Terms);
  return hn::BitCast(d, hn::Add(hn::BitCast(bits, power), hn::ShiftLeft<23>(hn::BitCast(bits, shifted))));
}

// x, brought to at most `limit` of either sign. NaN stays.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Held(D d, V x, float limit) {
  return AtMost(AtLeast(x, hn::Set(d, -limit)), hn::Set(d, limit));
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V LogOf(D d, V x) {
  const V zero = hn::Zero(d);
  const V infinity = hn::Inf(d);
  const V finite = hn::Log(d, hn::Min(x, hn::Set(d, 3.4028234e38f)));
  const V positive = hn::IfThenElse(hn::Ge(x, infinity), infinity, finite);
  const V rest = hn::IfThenElse(hn::Eq(x, zero), hn::Neg(infinity), hn::NaN(d));
  return hn::IfThenElse(hn::Gt(x, zero), positive, rest);
}

// tanh(x) as a fraction: x times a polynomial of x^2 by another, fitted to an error below 6e-8 of the result
// up to 9, where it is 1 in floats. NaN stays.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V TanhFraction(D d, V x, V* divisor) {
  static constexpr float kAbove[] = {9.99999941e-01f, 1.29192406e-01f,  2.92077469e-03f,
                                     9.26753277e-06f, -1.27807504e-08f, 1.82559589e-11f};
  static constexpr float kBelow[] = {1.0f, 4.62525245e-01f, 2.37632219e-02f, 2.28101942e-04f};
  const V held = Held(d, x, 9.0f);
  const V square = hn::Mul(held, held);
  *divisor = Polynomial(d, square, kBelow);
  return hn::Mul(held, Polynomial(d, square, kAbove));
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V TanhOf(D d, V x) {
  V divisor;
  const V dividend = TanhFraction(d, x, &divisor);
  return Held(d, hn::Div(dividend, divisor), 1.0f);
}

// erf(x) = 1 - exp(-x q(x)) for x above 0. The polynomial q is fitted to an error below 4e-8 of the result up
// to 4. From there on erf is 1 in floats. With the parts of exp(-x q(x)) that is (1 - 2^n) - tail * 2^n,
// which loses no digits near 0. NaN stays.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V ErfOf(D d, V x) {
  static constexpr float kTerms[] = {-1.128379226e+00f, -6.366164684e-01f, -1.028144136e-01f,
                                     1.932172477e-02f,  -2.057280944e-04f, -1.251738169e-03f,
                                     3.809977206e-04f,  -4.070753857e-05f};
  const hn::RebindToSigned<D> bits;
  const V one = hn::Set(d, 1.0f);
  const V magnitude = AtMost(hn::Abs(x), hn::Set(d, 4.0f));
  hn::Vec<hn::RebindToSigned<D>> exponent;
  const V tail = ExpTail(d, hn::Mul(magnitude, Polynomial(d, magnitude, kTerms)), &exponent);
  const V scale = hn::BitCast(d, hn::Add(hn::BitCast(bits, one), exponent));
  return hn::CopySign(hn::NegMulAdd(tail, scale, hn::Sub(one, scale)), x);
}

// erf(x) as a fraction, x times a polynomial of x^2 by another, fitted to an error below 6e-8 of the result
// up to 3.95. Rounding makes that 3e-7, which is too much for erf itself, and little for what is added to 1.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V ErfAsTerm(D d, V x) {
  static constexpr float kAbove[] = {1.128379104e+00f, 2.025697808e-01f,  5.092147775e-02f, 3.807248023e-03f,
                                     1.437925904e-04f, -1.950792302e-06f, 1.960338436e-08f};
  static constexpr float kBelow[] = {1.0f, 5.128543091e-01f, 1.160890402e-01f, 1.457458583e-02f,
                                     9.796940171e-04f};
  const V most = hn::Set(d, 3.95f);
  const V square = hn::Mul(x, x);
  const V fraction = hn::Div(hn::Mul(x, Polynomial(d, square, kAbove)), Polynomial(d, square, kBelow));
  // 1 in floats from there on.
  return hn::IfThenElse(hn::Gt(hn::Abs(x), most), hn::CopySign(hn::Set(d, 1.0f), x), Held(d, fraction, 1.0f));
}

// Highway's sine and cosine are exact for moderate x, which they convert to integers. Other numbers are rare,
// do not always fit an integer, and go to the standard library. Each goes by itself, so that what an element
// becomes does not depend on the others of its vector.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V OfModerate(D d, V x, V (*vector)(D, V), float (*scalar)(float)) {
  constexpr float kMost = 30000.0F;
  const auto is_moderate = hn::Lt(hn::Abs(x), hn::Set(d, kMost));
  if (HWY_LIKELY(hn::AllTrue(d, is_moderate))) return vector(d, x);
  HWY_ALIGN float elements[hn::MaxLanes(D())];
  HWY_ALIGN float results[hn::MaxLanes(D())];
  hn::Store(x, d, elements);
  hn::Store(vector(d, hn::IfThenElseZero(is_moderate, x)), d, results);
  for (std::size_t i = 0; i < hn::Lanes(d); ++i) {
    if (!(std::fabs(elements[i]) < kMost)) results[i] = scalar(elements[i]);
  }
  return hn::Load(d, results);
}
template <class D, class V = hn::Vec<D>>
HWY_INLINE V VectorSin(D d, V x) {
  return hn::Sin(d, x);
}
template <class D, class V = hn::Vec<D>>
HWY_INLINE V VectorCos(D d, V x) {
  return hn::Cos(d, x);
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V SinOf(D d, V x) {
  // Highway's gives 0 for -0 where numbers are computed one by one.
  return hn::IfThenElse(hn::Eq(x, hn::Zero(d)), x, OfModerate(d, x, &VectorSin<D>, &std::sin));
}
template <class D, class V = hn::Vec<D>>
HWY_INLINE V CosOf(D d, V x) {
  return OfModerate(d, x, &VectorCos<D>, &std::cos);
}

// Highway's make 0 of -0 on CPUs without an instruction for them.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V RoundOf(D, V x) {
  return hn::CopySign(hn::Round(x), x);
}
template <class D, class V = hn::Vec<D>>
HWY_INLINE V FloorOf(D, V x) {
  return hn::CopySign(hn::Floor(x), x);
}
template <class D, class V = hn::Vec<D>>
HWY_INLINE V CeilOf(D, V x) {
  return hn::CopySign(hn::Ceil(x), x);
}

// A product that is rounded before something is added to it. g++ would make one operation of both.
template <class V>
HWY_INLINE V RoundedProduct(V a, V b) {
  V product = hn::Mul(a, b);
#if HWY_ARCH_X86 && HWY_COMPILER_GCC && !HWY_COMPILER_CLANG && HWY_TARGET != HWY_SCALAR && \
    HWY_TARGET != HWY_EMU128
  asm("" : "+v"(product.raw));
#endif
  return product;
}

// exp(x) - 1 = (2^n - 1) + tail * 2^n loses no digits near 0. Half of it is computed first, because 2^n is
// infinite for the largest finite results. Only for x that is no NaN.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Expm1Of(D d, V x) {
  const hn::RebindToSigned<D> bits;
  const V half = hn::Set(d, 0.5f);
  const V held = hn::Min(hn::Max(x, hn::Set(d, -86.0f)), hn::Set(d, 89.0f));
  hn::Vec<hn::RebindToSigned<D>> exponent;
  const V tail = ExpTail(d, held, &exponent);
  const V scale = hn::BitCast(d, hn::Add(hn::BitCast(bits, half), exponent));
  const V result = hn::MulAdd(tail, scale, hn::Sub(scale, half));
  // Numbers so near 0 are their own results, to the sign and to the smallest of them.
  return hn::IfThenElse(hn::Lt(hn::Abs(x), hn::Set(d, 0x1p-25f)), x, hn::Add(result, result));
}

// The functions of kernels/contract/scalar_functions.h: ReluOf(d, x) and so on, and the same with numbers in
// place of all operands but the first, ReluOfVector() and ClipOfVector{low, high}.
#define NUMBER(c) hn::Set(d, static_cast<float>(c))
#define ADD(a, b) hn::Add(a, b)
#define SUB(a, b) hn::Sub(a, b)
#define MUL(a, b) hn::Mul(a, b)
#define DIV(a, b) hn::Div(a, b)
#define NEG(a) hn::Neg(a)
#define ABS(a) hn::Abs(a)
#define PRODUCT(a, b) RoundedProduct(a, b)
#define MUL_ADD(a, b, c) hn::MulAdd(a, b, c)
#define LESS(a, b) hn::Lt(a, b)
#define IS_NAN(a) hn::IsNaN(a)
#define EITHER(p, q) hn::Or(p, q)
#define SELECT(p, a, b) hn::IfThenElse(p, a, b)
#define AT_LEAST(x, low) AtLeast(x, low)
#define AT_MOST(x, high) AtMost(x, high)
#define EXP(a) ExpOf(d, a)
#define EXPM1(a) Expm1Of(d, a)
#define LOG1P(a) hn::Log1p(d, a)
#define TANH(a) TanhOf(d, a)
#define ERF(a) ErfAsTerm(d, a)
#define CALL(name, ...) name##Of(d, __VA_ARGS__)
#define REWIRE_OF_ONE(name, x, ...)                  \
  template <class D, class V = hn::Vec<D>>           \
  HWY_INLINE V name##Of([[maybe_unused]] D d, V x) { \
    return __VA_ARGS__;                              \
  }                                                  \
  struct name##OfVector {                            \
    template <class D, class V = hn::Vec<D>>         \
    HWY_INLINE V operator()(D d, V value) const {    \
      return name##Of(d, value);                     \
    }                                                \
  };
#define REWIRE_OF_TWO(name, x, y, ...)                    \
  template <class D, class V = hn::Vec<D>>                \
  HWY_INLINE V name##Of([[maybe_unused]] D d, V x, V y) { \
    return __VA_ARGS__;                                   \
  }                                                       \
  struct name##OfVector {                                 \
    float second;                                         \
    template <class D, class V = hn::Vec<D>>              \
    HWY_INLINE V operator()(D d, V value) const {         \
      return name##Of(d, value, hn::Set(d, second));      \
    }                                                     \
  };                                                      \
  struct name##OfVectors {                                \
    template <class D, class V = hn::Vec<D>>              \
    HWY_INLINE V operator()(D d, V a, V b) const {        \
      return name##Of(d, a, b);                           \
    }                                                     \
  };
#define REWIRE_OF_THREE(name, x, y, z, ...)                             \
  template <class D, class V = hn::Vec<D>>                              \
  HWY_INLINE V name##Of([[maybe_unused]] D d, V x, V y, V z) {          \
    return __VA_ARGS__;                                                 \
  }                                                                     \
  struct name##OfVector {                                               \
    float second, third;                                                \
    template <class D, class V = hn::Vec<D>>                            \
    HWY_INLINE V operator()(D d, V value) const {                       \
      return name##Of(d, value, hn::Set(d, second), hn::Set(d, third)); \
    }                                                                   \
  };

REWIRE_FUNCTIONS_OF_NUMBERS(REWIRE_OF_ONE, REWIRE_OF_TWO, REWIRE_OF_THREE)
REWIRE_FUNCTIONS_OF_REALS(REWIRE_OF_ONE, REWIRE_OF_TWO, REWIRE_OF_THREE)

struct TanhOfVector {
  template <class D, class V = hn::Vec<D>>
  HWY_INLINE V operator()(D d, V x) const {
    return TanhOf(d, x);
  }
};

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
#undef REWIRE_OF_ONE
#undef REWIRE_OF_TWO
#undef REWIRE_OF_THREE

}  // namespace rewire::kernel::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
