// SPDX-License-Identifier: Apache-2.0
// Compiled once for each instruction set; see Highway's foreach_target.h.
#include "rewire/kernels/cpu/math/pair_math.h"

#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "rewire/kernels/cpu/math/pair_math.cc"
#include <hwy/foreach_target.h>
// Behind it.
#include <hwy/highway.h>

#include <hwy/contrib/math/math-inl.h>

HWY_BEFORE_NAMESPACE();
namespace rewire::kernel::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

// The last elements go through vectors of their own, padded with 1.
template <V (*kFunction)(D, V, V)>
void Apply(const float* a, const float* b, float* out, std::int64_t count) {
  const D d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes)
    hn::StoreU(kFunction(d, hn::LoadU(d, a + i), hn::LoadU(d, b + i)), d, out + i);
  if (i == count) return;
  HWY_ALIGN float rest[2][hn::MaxLanes(D())];
  std::fill(std::copy(a + i, a + count, rest[0]), rest[0] + lanes, 1.0F);
  std::fill(std::copy(b + i, b + count, rest[1]), rest[1] + lanes, 1.0F);
  hn::Store(kFunction(d, hn::Load(d, rest[0]), hn::Load(d, rest[1])), d, rest[0]);
  std::copy_n(rest[0], count - i, out + i);
}

template <float (*kFunction)(float, float)>
V Each(D d, V a, V b) {
  HWY_ALIGN float elements[2][hn::MaxLanes(D())];
  hn::Store(a, d, elements[0]);
  hn::Store(b, d, elements[1]);
  for (std::size_t i = 0; i < hn::Lanes(d); ++i) elements[0][i] = kFunction(elements[0][i], elements[1][i]);
  return hn::Load(d, elements[0]);
}

inline float ScalarFmod(float a, float b) { return std::fmod(a, b); }

// x - q y with the whole number q = x / y, rounded down, for the magnitudes x and y. As long as floats hold q
// exactly, x - q y is one too. Rounding makes q too large by at most 1, which makes the rest negative: then y
// is added, which is exact again. This needs a product that is not rounded before it is subtracted.
inline V Fmod(D d, V a, V b) {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
  const V x = hn::Abs(a), y = hn::Abs(b), zero = hn::Zero(d), infinity = hn::Inf(d);
  const V quotient = hn::Floor(hn::Div(x, y));
  const auto has_result = hn::And(hn::Lt(x, infinity), hn::Gt(y, zero));  // false for NaN
  const auto is_exact = hn::Lt(quotient, hn::Set(d, 8388608.0F));
  if (HWY_UNLIKELY(!hn::AllTrue(d, hn::Or(is_exact, hn::Not(has_result))))) return Each<ScalarFmod>(d, a, b);
  V rest = hn::NegMulAdd(quotient, y, x);
  rest = hn::IfThenElse(hn::Lt(rest, zero), hn::Add(rest, y), rest);
  rest = hn::IfThenElse(hn::Eq(quotient, zero), x, rest);  // also below an infinite y
  return hn::IfThenElse(has_result, hn::CopySign(rest, a), hn::NaN(d));
#else
  return Each<ScalarFmod>(d, a, b);
#endif
}

#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128

inline float ScalarPow(float a, float b) { return std::pow(a, b); }
inline V Pow(D d, V a, V b) { return Each<ScalarPow>(d, a, b); }

#else

using Half = hn::Half<D>;
using Wide = hn::Rebind<double, Half>;

// |x|^y as exp(y log|x|) in f64, which leaves 20 bits more than a float has for the errors of both.
inline hn::Vec<Half> PowerOfMagnitude(hn::Vec<Half> magnitude, hn::Vec<Half> exponent) {
  const Wide d;
  const auto x = hn::PromoteTo(d, magnitude), y = hn::PromoteTo(d, exponent);
  const auto one = hn::Set(d, 1.0), infinity = hn::Inf(d);
  const auto is_ordinary = hn::And(hn::Gt(x, hn::Zero(d)), hn::Lt(x, infinity));
  const auto of_others = hn::IfThenElse(hn::Eq(x, hn::Zero(d)), hn::Neg(infinity), infinity);
  const auto log = hn::IfThenElse(is_ordinary, hn::Log(d, hn::IfThenElse(is_ordinary, x, one)), of_others);
  // Beyond these floats are 0 or infinite. NaN, of 0 times infinity, is put right by the caller.
  const auto product = hn::Mul(y, log);
  const auto held = hn::Min(hn::Max(product, hn::Set(d, -200.0)), hn::Set(d, 200.0));
  return hn::DemoteTo(Half(), hn::Exp(d, held));
}

inline V Pow(D d, V a, V b) {
  const V x = hn::Abs(a), one = hn::Set(d, 1.0F);
  const V magnitude = hn::Combine(d, PowerOfMagnitude(hn::UpperHalf(Half(), x), hn::UpperHalf(Half(), b)),
                                  PowerOfMagnitude(hn::LowerHalf(Half(), x), hn::LowerHalf(Half(), b)));
  V power = hn::IfThenElse(hn::Eq(x, one), one, magnitude);
  // Below 0 the exponent must be whole: all floats from 2^24 on are even numbers.
  const V half = hn::Mul(b, hn::Set(d, 0.5F));
  const auto is_whole = hn::Eq(hn::Trunc(b), b);
  const auto is_odd = hn::AndNot(hn::Eq(hn::Trunc(half), half), is_whole);
  power = hn::IfThenElse(is_odd, hn::CopySign(power, a), power);
  const auto is_below = hn::And(hn::Lt(a, hn::Zero(d)), hn::Gt(a, hn::Neg(hn::Inf(d))));
  power = hn::IfThenElse(hn::AndNot(is_whole, is_below), hn::NaN(d), power);
  power = hn::IfThenElse(hn::Or(hn::IsNaN(a), hn::IsNaN(b)), hn::NaN(d), power);
  return hn::IfThenElse(hn::Or(hn::Eq(b, hn::Zero(d)), hn::Eq(a, one)), one, power);
}

#endif

PairMath PairFunctions() { return {&Apply<Fmod>, &Apply<Pow>}; }

}  // namespace rewire::kernel::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rewire::kernel::cpu {

HWY_EXPORT(PairFunctions);

PairMath ChoosePairMath() { return HWY_DYNAMIC_DISPATCH(PairFunctions)(); }

const PairMath& BestPairMath() {
  static const PairMath kBest = ChoosePairMath();
  return kBest;
}

}  // namespace rewire::kernel::cpu
#endif
