// SPDX-License-Identifier: Apache-2.0
// Trigonometric and hyperbolic functions of a vector of floats and their inverses; included as
// vector_functions-inl.h is. Highway's functions have ranges. What lies outside of them is put right here.
#if defined(REWIRE_KERNELS_CPU_TRIGONOMETRY_) == defined(HWY_TARGET_TOGGLE)
#ifdef REWIRE_KERNELS_CPU_TRIGONOMETRY_
#undef REWIRE_KERNELS_CPU_TRIGONOMETRY_
#else
#define REWIRE_KERNELS_CPU_TRIGONOMETRY_
#endif

#include "rewire/kernels/cpu/math/vector_functions-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rewire::kernel::cpu::HWY_NAMESPACE {

template <class D, class V = hn::Vec<D>>
HWY_INLINE V VectorTan(D d, V x) {
  return hn::Div(hn::Sin(d, x), hn::Cos(d, x));
}

// The zeros keep their signs.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V TanOf(D d, V x) {
  return hn::IfThenElse(hn::Eq(x, hn::Zero(d)), x, OfModerate(d, x, &VectorTan<D>, &std::tan));
}

// NaN beyond 1 of either sign.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V AsinOf(D d, V x) {
  return hn::IfThenElse(hn::Le(hn::Abs(x), hn::Set(d, 1.0F)), hn::Asin(d, x), hn::NaN(d));
}
template <class D, class V = hn::Vec<D>>
HWY_INLINE V AcosOf(D d, V x) {
  return hn::IfThenElse(hn::Le(hn::Abs(x), hn::Set(d, 1.0F)), hn::Acos(d, x), hn::NaN(d));
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V AtanOf(D d, V x) {
  return hn::IfThenElse(hn::IsNaN(x), x, hn::Atan(d, x));
}

// (exp(x) - 1) (exp(x) + 1) / (2 exp(x)), in the order that keeps small results exact. From 88 on exp(x) / 2
// is the result, as the square of exp(x / 2).
template <class D, class V = hn::Vec<D>>
HWY_INLINE V SinhOf(D d, V x) {
  const V magnitude = hn::Abs(x), limit = hn::Set(d, 88.0F), half = hn::Set(d, 0.5F);
  const V root = ExpOf(d, hn::Mul(magnitude, half));
  const V large = hn::Mul(hn::Mul(root, half), root);
  const V small = hn::Sinh(d, hn::Min(magnitude, limit));
  return hn::IfThenElse(hn::IsNaN(x), x,
                        hn::CopySign(hn::IfThenElse(hn::Gt(magnitude, limit), large, small), x));
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V CoshOf(D d, V x) {
  const V half = hn::Set(d, 0.5F);
  const V root = ExpOf(d, hn::Mul(hn::Abs(x), half));
  const V most = hn::Mul(hn::Mul(root, half), root);
  return hn::Add(most, hn::Div(hn::Set(d, 0.25F), most));
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V AsinhOf(D d, V x) {
  const auto is_finite = hn::Lt(hn::Abs(x), hn::Inf(d));
  return hn::IfThenElse(is_finite, hn::Asinh(d, x), x);
}

// NaN below 1.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V AcoshOf(D d, V x) {
  const V finite = hn::IfThenElse(hn::Lt(x, hn::Inf(d)), hn::Acosh(d, x), x);
  return hn::IfThenElse(hn::Ge(x, hn::Set(d, 1.0F)), finite, hn::NaN(d));
}

// Infinite at 1 of either sign, and NaN beyond.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V AtanhOf(D d, V x) {
  const V magnitude = hn::Abs(x), one = hn::Set(d, 1.0F);
  const V at_least_one = hn::IfThenElse(hn::Eq(magnitude, one), hn::CopySign(hn::Inf(d), x), hn::NaN(d));
  return hn::IfThenElse(hn::Lt(magnitude, one), hn::Atanh(d, x), at_least_one);
}

}  // namespace rewire::kernel::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
