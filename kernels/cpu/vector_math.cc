// SPDX-License-Identifier: Apache-2.0
// Compiled once for each instruction set; see Highway's foreach_target.h.
#include "kernels/cpu/vector_math.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/vector_math.cc"
#include <hwy/foreach_target.h>
// Behind it, and in this order.
#include <hwy/highway.h>

#include <hwy/contrib/math/math-inl.h>

HWY_BEFORE_NAMESPACE();
namespace rewire::kernel::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

// Highway's functions have ranges; what lies outside of them is put right here.

V Exp(D d, V x) {
  const V power = hn::Exp(d, hn::Min(x, hn::Set(d, 104.0f)));
  return hn::IfThenElse(hn::IsNaN(x), x, power);
}

V Log(D d, V x) {
  const V zero = hn::Zero(d);
  const V infinity = hn::Inf(d);
  const V finite = hn::Log(d, hn::Min(x, hn::Set(d, 3.4028234e38f)));
  const V positive = hn::IfThenElse(hn::Ge(x, infinity), infinity, finite);
  const V rest = hn::IfThenElse(hn::Eq(x, zero), hn::Neg(infinity), hn::NaN(d));
  return hn::IfThenElse(hn::Gt(x, zero), positive, rest);
}

V Tanh(D d, V x) {
  const V limit = hn::Set(d, 20.0f);
  const V held = hn::Min(hn::Max(x, hn::Neg(limit)), limit);
  return hn::IfThenElse(hn::IsNaN(x), x, hn::Tanh(d, held));
}

V Sigmoid(D d, V x) {
  const V one = hn::Set(d, 1.0f);
  return hn::Div(one, hn::Add(one, Exp(d, hn::Neg(x))));
}

template <std::size_t kTerms>
V Polynomial(D d, V x, const float (&terms)[kTerms]) {
  V sum = hn::Set(d, terms[kTerms - 1]);
  for (std::size_t i = kTerms - 1; i-- > 0;) sum = hn::MulAdd(sum, x, hn::Set(d, terms[i]));
  return sum;
}

// Up to 1 a polynomial of x^2 times x; from there 1 - exp(-x^2) times a polynomial of 1 / (1 + x / 2). Both
// are interpolated at Chebyshev's points; the error is below 2e-7 of the result.
V Erf(D d, V x) {
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

V Gelu(D d, V x) {
  const V half = hn::Mul(x, hn::Set(d, 0.5f));
  return hn::MulAdd(half, Erf(d, hn::Mul(x, hn::Set(d, 0.70710678f))), half);
}

// The last elements go through a vector of their own, padded with 0.
template <V (*kFunction)(D, V)>
void Apply(const float* in, float* out, std::int64_t count) {
  const D d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) hn::StoreU(kFunction(d, hn::LoadU(d, in + i)), d, out + i);
  if (i == count) return;
  HWY_ALIGN float rest[hn::MaxLanes(D())] = {};
  std::copy(in + i, in + count, rest);
  hn::Store(kFunction(d, hn::Load(d, rest)), d, rest);
  std::copy_n(rest, count - i, out + i);
}

float ShiftedExp(const float* in, float shift, float* out, std::int64_t count) {
  const D d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const V by = hn::Set(d, shift);
  V sums = hn::Zero(d);
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const V power = Exp(d, hn::Sub(hn::LoadU(d, in + i), by));
    hn::StoreU(power, d, out + i);
    sums = hn::Add(sums, power);
  }
  float sum = hn::GetLane(hn::SumOfLanes(d, sums));
  if (i == count) return sum;
  HWY_ALIGN float rest[hn::MaxLanes(D())] = {};
  std::copy(in + i, in + count, rest);
  hn::Store(Exp(d, hn::Sub(hn::Load(d, rest), by)), d, rest);
  for (std::int64_t k = 0; k < count - i; ++k) sum += out[i + k] = rest[k];
  return sum;
}

VectorMath Functions() {
  return {&Apply<Exp>, &Apply<Log>, &Apply<Tanh>, &Apply<Sigmoid>, &Apply<Erf>, &Apply<Gelu>, &ShiftedExp};
}

}  // namespace rewire::kernel::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rewire::kernel::cpu {

HWY_EXPORT(Functions);

VectorMath ChooseVectorMath() { return HWY_DYNAMIC_DISPATCH(Functions)(); }

const VectorMath& BestVectorMath() {
  static const VectorMath kBest = ChooseVectorMath();
  return kBest;
}

}  // namespace rewire::kernel::cpu
#endif
