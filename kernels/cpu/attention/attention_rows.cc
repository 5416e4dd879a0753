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

// One key.
HWY_INLINE float ScoreOf(const float* HWY_RESTRICT query, const float* HWY_RESTRICT key, std::int64_t size) {
  const RowsF d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  auto sum = hn::Zero(d);
  std::int64_t i = 0;
  for (; i + lanes <= size; i += lanes) sum = hn::MulAdd(hn::LoadU(d, query + i), hn::LoadU(d, key + i), sum);
  float score = hn::GetLane(hn::SumOfLanes(d, sum));
  for (; i < size; ++i) score += query[i] * key[i];
  return score;
}

// Four keys at once: the query is loaded once for them, and no sum waits for another.
void ScoresOfKeys(const float* HWY_RESTRICT query, const float* HWY_RESTRICT keys, std::int64_t count,
                  std::int64_t size, std::int64_t step, float factor, float* HWY_RESTRICT scores) {
  const RowsF d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t j = 0;
  for (; j + 4 <= count; j += 4) {
    const float* const key = keys + j * step;
    auto s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
    std::int64_t i = 0;
    for (; i + lanes <= size; i += lanes) {
      const auto q = hn::LoadU(d, query + i);
      s0 = hn::MulAdd(q, hn::LoadU(d, key + i), s0);
      s1 = hn::MulAdd(q, hn::LoadU(d, key + step + i), s1);
      s2 = hn::MulAdd(q, hn::LoadU(d, key + 2 * step + i), s2);
      s3 = hn::MulAdd(q, hn::LoadU(d, key + 3 * step + i), s3);
    }
    float sums[4] = {hn::GetLane(hn::SumOfLanes(d, s0)), hn::GetLane(hn::SumOfLanes(d, s1)),
                     hn::GetLane(hn::SumOfLanes(d, s2)), hn::GetLane(hn::SumOfLanes(d, s3))};
    for (; i < size; ++i) {
      for (int n = 0; n < 4; ++n) sums[n] += query[i] * key[n * step + i];
    }
    for (int n = 0; n < 4; ++n) scores[j + n] = sums[n] * factor;
  }
  for (; j < count; ++j) scores[j] = ScoreOf(query, keys + j * step, size) * factor;
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

AttentionRows RowsOfTarget() { return {&ScoresOfKeys, &AddWeightedValues}; }

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
