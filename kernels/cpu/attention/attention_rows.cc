// SPDX-License-Identifier: Apache-2.0
// Compiled once for each instruction set; see Highway's foreach_target.h.
#include "rewire/kernels/cpu/attention/attention_rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "rewire/kernels/cpu/attention/attention_rows.cc"
#include <hwy/foreach_target.h>
// Behind it.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace rewire::kernel::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using RowsF = hn::CappedTag<float, 16>;

// Few queries wait for memory, so what lies some keys further on is fetched.
constexpr std::int64_t kAhead = 16;
HWY_INLINE void Fetch(const float* from, std::int64_t size) {
  for (std::int64_t i = 0; i < size; i += 16) __builtin_prefetch(from + i);
}

#if HWY_TARGET != HWY_SCALAR

// The sum of all blocks of four lanes.
template <class D>
HWY_INLINE void StoreBlockSums(D d, hn::Vec<D> v, float* to) {
  if constexpr (hn::MaxLanes(d) == 4) {
    hn::StoreU(v, d, to);
  } else {
    const hn::Half<D> half;
    StoreBlockSums(half, hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v)), to);
  }
}

#endif

// The sums of four vectors' lanes.
template <class D>
HWY_INLINE void StoreSums(D d, hn::Vec<D> a, hn::Vec<D> b, hn::Vec<D> c, hn::Vec<D> e, float* to) {
#if HWY_TARGET == HWY_SCALAR
  (void)d;
  const hn::Vec<D> sums[] = {a, b, c, e};
  for (int n = 0; n < 4; ++n) to[n] = hn::GetLane(sums[n]);
#else
  const hn::RepartitionToWide<D> wide;
  const auto ab = hn::BitCast(wide, hn::Add(hn::InterleaveLower(d, a, b), hn::InterleaveUpper(d, a, b)));
  const auto ce = hn::BitCast(wide, hn::Add(hn::InterleaveLower(d, c, e), hn::InterleaveUpper(d, c, e)));
  const auto sums = hn::Add(hn::BitCast(d, hn::InterleaveLower(wide, ab, ce)),
                            hn::BitCast(d, hn::InterleaveUpper(wide, ab, ce)));
  StoreBlockSums(d, sums, to);
#endif
}

// Four scores, of one query and four keys or of four queries and one key.
template <int kQueries, int kKeys>
HWY_INLINE void ScoreFour(const float* const* queries, const float* HWY_RESTRICT keys, std::int64_t size,
                          std::int64_t step, float factor, float* HWY_RESTRICT scores) {
  const RowsF d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const float* q[4];
  const float* k[4];
  for (int n = 0; n < 4; ++n) {
    q[n] = queries[kQueries == 1 ? 0 : n];
    k[n] = keys + (kKeys == 1 ? 0 : n * step);
  }
  auto s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
  std::int64_t i = 0;
  for (; i + lanes <= size; i += lanes) {
    s0 = hn::MulAdd(hn::LoadU(d, q[0] + i), hn::LoadU(d, k[0] + i), s0);
    s1 = hn::MulAdd(hn::LoadU(d, q[1] + i), hn::LoadU(d, k[1] + i), s1);
    s2 = hn::MulAdd(hn::LoadU(d, q[2] + i), hn::LoadU(d, k[2] + i), s2);
    s3 = hn::MulAdd(hn::LoadU(d, q[3] + i), hn::LoadU(d, k[3] + i), s3);
  }
  for (int n = 0; n < kKeys; ++n) Fetch(k[n] + kAhead * step, size);
  float sums[4];
  StoreSums(d, s0, s1, s2, s3, sums);
  for (; i < size; ++i) {
    for (int n = 0; n < 4; ++n) sums[n] += q[n][i] * k[n][i];
  }
  for (int n = 0; n < 4; ++n) scores[n] = sums[n] * factor;
}

void ScoresOfKeys(const float* query, const float* keys, std::int64_t count, std::int64_t size,
                  std::int64_t step, float factor, float* scores) {
  std::int64_t j = 0;
  for (; j + 4 <= count; j += 4) ScoreFour<1, 4>(&query, keys + j * step, size, step, factor, scores + j);
  for (; j < count; ++j) {
    float same[4];
    ScoreFour<1, 4>(&query, keys + j * step, size, 0, factor, same);
    scores[j] = same[0];
  }
}

void ScoresOfFour(const float* const* queries, const float* keys, std::int64_t count, std::int64_t size,
                  std::int64_t step, float factor, float* scores, std::int64_t width) {
  for (std::int64_t j = 0; j < count; ++j)
    ScoreFour<4, 1>(queries, keys + j * step, size, step, factor, scores + j * width);
}

// kVectors vectors of elements, which stay in registers while all values are added.
template <int kVectors>
HWY_INLINE void AddColumns(const float* HWY_RESTRICT weights, const float* HWY_RESTRICT values,
                           std::int64_t count, std::int64_t step, float keep, float* HWY_RESTRICT to) {
  const RowsF d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto kept = hn::Set(d, keep);
  auto s0 = hn::Mul(hn::LoadU(d, to), kept), s1 = s0, s2 = s0, s3 = s0;
  if constexpr (kVectors == 4) {
    s1 = hn::Mul(hn::LoadU(d, to + lanes), kept);
    s2 = hn::Mul(hn::LoadU(d, to + 2 * lanes), kept);
    s3 = hn::Mul(hn::LoadU(d, to + 3 * lanes), kept);
  }
  for (std::int64_t j = 0; j < count; ++j) {
    const auto weight = hn::Set(d, weights[j]);
    const float* value = values + j * step;
    if constexpr (kVectors == 4) Fetch(value + kAhead * step, 4 * lanes);
    s0 = hn::MulAdd(weight, hn::LoadU(d, value), s0);
    if constexpr (kVectors == 4) {
      s1 = hn::MulAdd(weight, hn::LoadU(d, value + lanes), s1);
      s2 = hn::MulAdd(weight, hn::LoadU(d, value + 2 * lanes), s2);
      s3 = hn::MulAdd(weight, hn::LoadU(d, value + 3 * lanes), s3);
    }
  }
  hn::StoreU(s0, d, to);
  if constexpr (kVectors == 4) {
    hn::StoreU(s1, d, to + lanes);
    hn::StoreU(s2, d, to + 2 * lanes);
    hn::StoreU(s3, d, to + 3 * lanes);
  }
}

void AddWeightedValues(const float* HWY_RESTRICT weights, const float* HWY_RESTRICT values,
                       std::int64_t count, std::int64_t size, std::int64_t step, float keep,
                       float* HWY_RESTRICT to) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(RowsF()));
  std::int64_t i = 0;
  for (; i + 4 * lanes <= size; i += 4 * lanes) AddColumns<4>(weights, values + i, count, step, keep, to + i);
  for (; i + lanes <= size; i += lanes) AddColumns<1>(weights, values + i, count, step, keep, to + i);
  for (; i < size; ++i) {
    float sum = to[i] * keep;
    for (std::int64_t j = 0; j < count; ++j) sum += weights[j] * values[j * step + i];
    to[i] = sum;
  }
}

AttentionRows RowsOfTarget() { return {&ScoresOfKeys, &ScoresOfFour, &AddWeightedValues}; }

}  // namespace rewire::kernel::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rewire::kernel::cpu {

HWY_EXPORT(RowsOfTarget);

AttentionRows ChooseAttentionRows() { return HWY_DYNAMIC_DISPATCH(RowsOfTarget)(); }

const AttentionRows& BestAttentionRows() {
  static const AttentionRows kBest = ChooseAttentionRows();
  return kBest;
}

}  // namespace rewire::kernel::cpu
#endif
