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

#include <hwy/contrib/math/math-inl.h>

HWY_BEFORE_NAMESPACE();
namespace rewire::kernel::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <class D, class V = hn::Vec<D>>
HWY_INLINE V ExpOf(D d, V x) {
  const V power = hn::Exp(d, hn::Min(x, hn::Set(d, 104.0f)));
  return hn::IfThenElse(hn::IsNaN(x), x, power);
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

template <class D, class V = hn::Vec<D>>
HWY_INLINE V TanhOf(D d, V x) {
  const V limit = hn::Set(d, 20.0f);
  const V held = hn::Min(hn::Max(x, hn::Neg(limit)), limit);
  return hn::IfThenElse(hn::IsNaN(x), x, hn::Tanh(d, held));
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V SigmoidOf(D d, V x) {
  const V one = hn::Set(d, 1.0f);
  return hn::Div(one, hn::Add(one, ExpOf(d, hn::Neg(x))));
}

template <class D, class V, std::size_t kTerms>
HWY_INLINE V Polynomial(D d, V x, const float (&terms)[kTerms]) {
  V sum = hn::Set(d, terms[kTerms - 1]);
  for (std::size_t i = kTerms - 1; i-- > 0;) sum = hn::MulAdd(sum, x, hn::Set(d, terms[i]));
  return sum;
}

// Up to 1 a polynomial of x^2 times x; from there 1 - exp(-x^2) times a polynomial of 1 / (1 + x / 2). Both
// are interpolated at Chebyshev's points; the error is below 2e-7 of the result.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V ErfOf(D d, V x) {
  static constexpr float kSmall[] = {1.128379166e+00f, -3.761262690e-01f, 1.128359746e-01f, -2.685432880e-02f,
                                     5.189311943e-03f, -8.018854994e-04f, 7.882497117e-05f};
  static constexpr float kLarge[] = {-1.199234200e-04f, 2.843185942e-01f,  2.641537395e-01f,
                                     3.287822200e-01f,  -5.344064183e-02f, 4.793521089e-01f,
                                     -3.842885420e-01f, 6.838916748e-02f,  1.295234205e-02f};
  const V one = hn::Set(d, 1.0f);
  const V magnitude = hn::Min(hn::Abs(x), hn::Set(d, 4.0f));  // 1 in floats from there on
  const V square = hn::Mul(magnitude, magnitude);
  const V small = hn::Mul(x, Polynomial(d, square, kSmall));
  const V inverse = hn::Div(one, hn::MulAdd(hn::Set(d, 0.5f), magnitude, one));
  const V tail = hn::Mul(hn::Exp(d, hn::Neg(square)), Polynomial(d, inverse, kLarge));
  const V large = hn::CopySign(hn::Sub(one, tail), x);
  const V either = hn::IfThenElse(hn::Le(magnitude, one), small, large);
  return hn::IfThenElse(hn::IsNaN(x), x, either);
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V GeluOf(D d, V x) {
  const V half = hn::Mul(x, hn::Set(d, 0.5f));
  return hn::MulAdd(half, ErfOf(d, hn::Mul(x, hn::Set(d, 0.70710678f))), half);
}

}  // namespace rewire::kernel::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
