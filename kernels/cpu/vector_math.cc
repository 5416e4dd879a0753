// SPDX-License-Identifier: Apache-2.0
// Compiled once for each instruction set; see Highway's foreach_target.h.
#include "kernels/cpu/vector_math.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/vector_math.cc"
#include <hwy/foreach_target.h>
// Behind it.
#include "kernels/cpu/vector_functions-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rewire::kernel::cpu::HWY_NAMESPACE {

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

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
    const V power = ExpOf(d, hn::Sub(hn::LoadU(d, in + i), by));
    hn::StoreU(power, d, out + i);
    sums = hn::Add(sums, power);
  }
  float sum = hn::GetLane(hn::SumOfLanes(d, sums));
  if (i == count) return sum;
  HWY_ALIGN float rest[hn::MaxLanes(D())] = {};
  std::copy(in + i, in + count, rest);
  hn::Store(ExpOf(d, hn::Sub(hn::Load(d, rest), by)), d, rest);
  for (std::int64_t k = 0; k < count - i; ++k) sum += out[i + k] = rest[k];
  return sum;
}

VectorMath Functions() {
  return {&Apply<ExpOf<D, V>>, &Apply<LogOf<D, V>>,  &Apply<TanhOf<D, V>>, &Apply<SigmoidOf<D, V>>,
          &Apply<ErfOf<D, V>>, &Apply<GeluOf<D, V>>, &ShiftedExp};
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
