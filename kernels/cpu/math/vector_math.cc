// SPDX-License-Identifier: Apache-2.0
// Compiled once for each instruction set; see Highway's foreach_target.h.
#include "rewire/kernels/cpu/math/vector_math.h"

#include <algorithm>
#include <bit>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "rewire/kernels/cpu/math/vector_math.cc"
#include <hwy/foreach_target.h>
// Behind it.
#include "rewire/kernels/cpu/math/bf16-inl.h"
#include "rewire/kernels/cpu/math/trigonometry-inl.h"
#include "rewire/kernels/cpu/math/vector_functions-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rewire::kernel::cpu::HWY_NAMESPACE {

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

// The last elements go through a vector of their own, padded with 0.
template <class F>
HWY_INLINE void ApplyOf(const F& f, const float* in, float* out, std::int64_t count) {
  const D d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) hn::StoreU(f(d, hn::LoadU(d, in + i)), d, out + i);
  if (i == count) return;
  HWY_ALIGN float rest[hn::MaxLanes(D())] = {};
  std::copy(in + i, in + count, rest);
  hn::Store(f(d, hn::Load(d, rest)), d, rest);
  std::copy_n(rest, count - i, out + i);
}
template <V (*kFunction)(D, V)>
void Apply(const float* in, float* out, std::int64_t count) {
  ApplyOf([](D d, V x) HWY_ATTR { return kFunction(d, x); }, in, out, count);
}

void Elu(const float* in, float alpha, float* out, std::int64_t count) {
  const EluOfVector elu{alpha};
  ApplyOf([&](D d, V x) HWY_ATTR { return elu(d, x); }, in, out, count);
}

float ShiftedExp(const float* in, float shift, float* out, std::int64_t count) {
  const D d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const V by = hn::Set(d, shift);
  V sums = hn::Zero(d);
  // The last vector overlaps the one before it. It is read first, since `out` may be `in`.
  const V last = count < lanes ? sums : hn::LoadU(d, in + count - lanes);
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const V power = ExpOfLow(d, hn::Sub(hn::LoadU(d, in + i), by));
    hn::StoreU(power, d, out + i);
    sums = hn::Add(sums, power);
  }
  if (i < count && count >= lanes) {
    const V power = ExpOfLow(d, hn::Sub(last, by));
    hn::StoreU(power, d, out + count - lanes);
    const auto added = hn::FirstN(d, static_cast<std::size_t>(lanes - (count - i)));
    sums = hn::Add(sums, hn::IfThenZeroElse(added, power));
    i = count;
  }
  float sum = hn::GetLane(hn::SumOfLanes(d, sums));
  if (i == count) return sum;
  HWY_ALIGN float rest[hn::MaxLanes(D())] = {};
  std::copy(in + i, in + count, rest);
  hn::Store(ExpOfLow(d, hn::Sub(hn::Load(d, rest), by)), d, rest);
  for (std::int64_t k = 0; k < count - i; ++k) {
    out[i + k] = rest[k];
    sum += rest[k];
  }
  return sum;
}

float SumOfExp(const float* in, float largest, std::int64_t count) {
  if (!(largest - largest == 0)) return std::numeric_limits<float>::quiet_NaN();
  const D d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const V by = hn::Set(d, largest);
  V sums = hn::Zero(d);
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes)
    sums = hn::Add(sums, ExpAsTerm(d, hn::Sub(hn::LoadU(d, in + i), by)));
  if (i == count) return hn::GetLane(hn::SumOfLanes(d, sums));
  HWY_ALIGN float rest[hn::MaxLanes(D())];
  std::fill(std::copy(in + i, in + count, rest), rest + lanes, -std::numeric_limits<float>::infinity());
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(sums, ExpAsTerm(d, hn::Sub(hn::Load(d, rest), by)))));
}

// Several vectors side by side, since each has to wait for the one before.
float Largest(const float* in, std::int64_t count) {
  const D d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  V most = hn::Neg(hn::Inf(d)), second = most;
  V sum = hn::Zero(d);  // NaN once a NaN was met; infinities of both signs give one too, which is looked into
  V second_sum = sum;
  std::int64_t i = 0;
  for (; i + 2 * lanes <= count; i += 2 * lanes) {
    const V x = hn::LoadU(d, in + i), y = hn::LoadU(d, in + i + lanes);
    most = hn::Max(most, x);
    second = hn::Max(second, y);
    sum = hn::Add(sum, x);
    second_sum = hn::Add(second_sum, y);
  }
  const auto take = [&](std::int64_t from) HWY_ATTR {
    const V x = hn::LoadU(d, in + from);
    most = hn::Max(most, x);
    sum = hn::Add(sum, x);
  };
  if (i + lanes <= count) {
    take(i);
    i += lanes;
  }
  if (i < count && count >= lanes) {
    take(count - lanes);  // some of them for the second time
    i = count;
  }
  float largest = hn::GetLane(hn::MaxOfLanes(d, hn::Max(most, second)));
  for (; i < count; ++i) {
    if (in[i] != in[i]) return in[i];
    largest = std::max(largest, in[i]);
  }
  const float check = hn::GetLane(hn::SumOfLanes(d, hn::Add(sum, second_sum)));
  // Some instruction sets find the lowest float among infinitely low ones.
  if (check == check && largest > std::numeric_limits<float>::lowest()) return largest;
  largest = -std::numeric_limits<float>::infinity();
  for (i = 0; i < count; ++i) {
    if (in[i] != in[i]) return in[i];
    largest = std::max(largest, in[i]);
  }
  return largest;
}

void Scaled(const float* in, float factor, float* out, std::int64_t count) {
  const D d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const V by = hn::Set(d, factor);
  const V last = count < lanes ? by : hn::LoadU(d, in + count - lanes);  // as in ShiftedExp
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) hn::StoreU(hn::Mul(hn::LoadU(d, in + i), by), d, out + i);
  if (i < count && count >= lanes) return hn::StoreU(hn::Mul(last, by), d, out + count - lanes);
  for (; i < count; ++i) out[i] = in[i] * factor;
}

void Lowered(const float* in, float first, float second, float* out, std::int64_t count) {
  const D d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const V a = hn::Set(d, first), b = hn::Set(d, second);
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) hn::StoreU(hn::Sub(hn::Sub(hn::LoadU(d, in + i), a), b), d, out + i);
  for (; i < count; ++i) out[i] = in[i] - first - second;
}

inline float FloatOf(float value) { return value; }
inline float FloatOf(std::uint16_t bf16) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bf16) << 16);
}

template <typename T>
void AddTo(const T* in, float* sums, std::int64_t count) {
  const D d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes)
    hn::StoreU(hn::Add(hn::LoadU(d, sums + i), LoadFloats(d, in + i)), d, sums + i);
  for (; i < count; ++i) sums[i] += FloatOf(in[i]);
}

template <bool larger>
void KeepExtremes(const float* in, float* results, std::int64_t count) {
  const D d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const V x = hn::LoadU(d, in + i), result = hn::LoadU(d, results + i);
    const auto beats = larger ? hn::Gt(x, result) : hn::Lt(x, result);
    hn::StoreU(hn::IfThenElse(hn::Or(beats, hn::IsNaN(x)), x, result), d, results + i);
  }
  for (; i < count; ++i) {
    const float x = in[i];
    if ((larger ? x > results[i] : x < results[i]) || x != x) results[i] = x;
  }
}

void Dots(const float* rows, std::int64_t step, std::int64_t count, const float* by, std::int64_t depth,
          float* out) {
  const D d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t r = 0; r < count; ++r, rows += step) {
    V first = hn::Zero(d), second = first;
    std::int64_t i = 0;
    for (; i + 2 * lanes <= depth; i += 2 * lanes) {
      first = hn::MulAdd(hn::LoadU(d, rows + i), hn::LoadU(d, by + i), first);
      second = hn::MulAdd(hn::LoadU(d, rows + i + lanes), hn::LoadU(d, by + i + lanes), second);
    }
    if (i + lanes <= depth) {
      first = hn::MulAdd(hn::LoadU(d, rows + i), hn::LoadU(d, by + i), first);
      i += lanes;
    }
    float rest = 0;
    for (; i < depth; ++i) rest += rows[i] * by[i];
    out[r] = hn::GetLane(hn::SumOfLanes(d, hn::Add(first, second))) + rest;
  }
}

VectorMath Functions() {
  return {&Apply<ExpOf<D, V>>,
          &Apply<LogOf<D, V>>,
          &Apply<TanhOf<D, V>>,
          &Apply<ErfOf<D, V>>,
          &Apply<SinOf<D, V>>,
          &Apply<CosOf<D, V>>,
          &Apply<TanOf<D, V>>,
          &Apply<AsinOf<D, V>>,
          &Apply<AcosOf<D, V>>,
          &Apply<AtanOf<D, V>>,
          &Apply<SinhOf<D, V>>,
          &Apply<CoshOf<D, V>>,
          &Apply<AsinhOf<D, V>>,
          &Apply<AcoshOf<D, V>>,
          &Apply<AtanhOf<D, V>>,
          &Apply<RoundOf<D, V>>,
          &Apply<FloorOf<D, V>>,
          &Apply<CeilOf<D, V>>,
          &Apply<SigmoidOf<D, V>>,
          &Apply<SwishOf<D, V>>,
          &Apply<SoftplusOf<D, V>>,
          &Apply<MishOf<D, V>>,
          &Apply<GeluOf<D, V>>,
          &Apply<GeluTanhOf<D, V>>,
          &Elu,
          &ShiftedExp,
          &SumOfExp,
          &Largest,
          &Scaled,
          &Lowered,
          &AddTo<float>,
          &AddTo<std::uint16_t>,
          &KeepExtremes<true>,
          &KeepExtremes<false>,
          &Dots};
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
