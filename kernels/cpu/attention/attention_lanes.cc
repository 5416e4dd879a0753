// SPDX-License-Identifier: Apache-2.0
// Compiled once for each instruction set; see Highway's foreach_target.h.
#include "rewire/kernels/cpu/attention/attention_lanes.h"

#include <algorithm>
#include <array>
#include <type_traits>
#include <utility>

#include "rewire/kernels/cpu/product/panels/panels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "rewire/kernels/cpu/attention/attention_lanes.cc"
#include <hwy/foreach_target.h>
// Behind it.
#include "rewire/kernels/cpu/math/vector_functions-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rewire::kernel::cpu::HWY_NAMESPACE {

using LanesF = hn::CappedTag<float, static_cast<std::size_t>(kLaneStep)>;
using LanesV = hn::Vec<LanesF>;
constexpr std::int64_t kLanes = hn::MaxLanes(LanesF());

#if HWY_TARGET != HWY_SCALAR

// Four elements of rows; block b of the vector has those of row 4 * b.
template <class D>
HWY_INLINE hn::Vec<D> BlocksOf(D d, const float* const* rows, std::int64_t column) {
  if constexpr (hn::MaxLanes(d) == 4) {
    return hn::LoadU(d, rows[0] + column);
  } else {
    const hn::Half<D> half;
    return hn::Combine(d, BlocksOf(half, rows + hn::MaxLanes(half), column), BlocksOf(half, rows, column));
  }
}

// Four columns of kLanes rows.
HWY_INLINE void TurnColumns(const float* const* rows, std::int64_t column, LanesV factor, float* to,
                            std::int64_t width) {
  const LanesF d;
  const hn::RepartitionToWide<LanesF> wide;
  const LanesV a = BlocksOf(d, rows, column), b = BlocksOf(d, rows + 1, column),
               c = BlocksOf(d, rows + 2, column), e = BlocksOf(d, rows + 3, column);
  const auto ab = hn::BitCast(wide, hn::InterleaveLower(d, a, b)),
             ce = hn::BitCast(wide, hn::InterleaveLower(d, c, e)),
             ab_up = hn::BitCast(wide, hn::InterleaveUpper(d, a, b)),
             ce_up = hn::BitCast(wide, hn::InterleaveUpper(d, c, e));
  const auto store = [&](auto v, std::int64_t j)
                         HWY_ATTR { hn::StoreU(hn::Mul(hn::BitCast(d, v), factor), d, to + j * width); };
  store(hn::InterleaveLower(wide, ab, ce), 0);
  store(hn::InterleaveUpper(wide, ab, ce), 1);
  store(hn::InterleaveLower(wide, ab_up, ce_up), 2);
  store(hn::InterleaveUpper(wide, ab_up, ce_up), 3);
}

#endif

void TurnRows(const float* const* from, std::int64_t rows, std::int64_t columns, float factor, float* to,
              std::int64_t width) {
  const float* lanes[kLaneStep];
  for (std::int64_t i = 0; i < width; i += kLanes) {
    for (std::int64_t r = 0; r < kLanes; ++r) lanes[r] = from[i + r < rows ? i + r : 0];
    std::int64_t j = 0;
#if HWY_TARGET != HWY_SCALAR
    const LanesV by = hn::Set(LanesF(), factor);
    for (; j + 4 <= columns; j += 4) TurnColumns(lanes, j, by, to + j * width + i, width);
#endif
    for (; j < columns; ++j) {
      for (std::int64_t r = 0; r < kLanes; ++r) to[j * width + i + r] = lanes[r][j] * factor;
    }
  }
}

// Each score and its term become a score.
template <class F>
HWY_INLINE void ForEachTerm(const float* HWY_RESTRICT terms, std::int64_t of_key, std::int64_t of_lane,
                            LaneScores scores, const F& f) {
  const LanesF d;
  float* HWY_RESTRICT of = scores.data;
  for (std::int64_t j = 0; j < scores.keys; ++j, terms += of_key, of += scores.step) {
    const LanesV same = hn::Set(d, *terms);
    for (std::int64_t i = 0; i < scores.width; i += kLanes) {
      const LanesV term = of_lane == 0 ? same : hn::LoadU(d, terms + i);
      hn::StoreU(f(hn::LoadU(d, of + i), term), d, of + i);
    }
  }
}

void AddTerms(const float* terms, std::int64_t of_key, std::int64_t of_lane, LaneScores scores) {
  const LanesF d;
  const LanesV lowest = hn::Set(d, kLowest), never = hn::Neg(hn::Inf(d));
  ForEachTerm(terms, of_key, of_lane, scores, [&](LanesV score, LanesV term) HWY_ATTR {
    const LanesV sum = hn::Add(score, term);
    const auto low = hn::And(hn::Gt(sum, never), hn::Lt(sum, lowest));
    return hn::IfThenElse(low, lowest, sum);
  });
}

void ChooseScores(const float* seen, std::int64_t of_key, std::int64_t of_lane, float hidden,
                  LaneScores scores) {
  const LanesF d;
  const LanesV instead = hn::Set(d, hidden);
  ForEachTerm(seen, of_key, of_lane, scores, [&](LanesV score, LanesV term) HWY_ATTR {
    return hn::IfThenElse(hn::Eq(term, hn::Zero(d)), instead, score);
  });
}

void WidenBytes(const std::uint8_t* HWY_RESTRICT from, std::int64_t count, float* HWY_RESTRICT to) {
  const LanesF d;
  const hn::RebindToSigned<LanesF> of_int;
  const hn::Rebind<std::uint8_t, LanesF> of_byte;
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    hn::StoreU(hn::ConvertTo(d, hn::PromoteTo(of_int, hn::LoadU(of_byte, from + i))), d, to + i);
  for (; i < count; ++i) to[i] = static_cast<float>(from[i]);
}

void HideKeys(const std::int32_t* first, const std::int32_t* last, LaneScores scores) {
  const LanesF d;
  const hn::RebindToSigned<LanesF> of_int;
  const LanesV never = hn::Neg(hn::Inf(d));
  float* of = scores.data;
  for (std::int64_t j = 0; j < scores.keys; ++j, of += scores.step) {
    const auto key = hn::Set(of_int, static_cast<std::int32_t>(j));
    const auto next = hn::Set(of_int, static_cast<std::int32_t>(j + 1));
    for (std::int64_t i = 0; i < scores.width; i += kLanes) {
      const auto before = hn::Lt(key, hn::LoadU(of_int, first + i));
      const auto behind = hn::Lt(hn::LoadU(of_int, last + i), next);
      const auto hidden = hn::RebindMask(d, hn::Or(before, behind));
      hn::StoreU(hn::IfThenElse(hidden, never, hn::LoadU(d, of + i)), d, of + i);
    }
  }
}

// kVectors vectors of lanes. A NaN among the scores may get lost in the largest one, but not in the sum.
template <int kVectors>
HWY_INLINE void WeighLanes(std::int64_t keys, std::int64_t step, float* HWY_RESTRICT scores, float* largest,
                           float* sum, float* keep) {
  const LanesF d;
  const LanesV to_base_2 = hn::Set(d, 1.44269504f), never = hn::Neg(hn::Inf(d));
  LanesV most[kVectors], second[kVectors], sums[kVectors];
  for (int n = 0; n < kVectors; ++n) most[n] = second[n] = never;
  // Two at a time, since each maximum waits for the one before.
  std::int64_t j = 0;
  for (; j + 2 <= keys; j += 2) {
    for (int n = 0; n < kVectors; ++n) {
      most[n] = hn::Max(most[n], hn::LoadU(d, scores + j * step + n * kLanes));
      second[n] = hn::Max(second[n], hn::LoadU(d, scores + (j + 1) * step + n * kLanes));
    }
  }
  for (int n = 0; n < kVectors; ++n) {
    most[n] = hn::Max(most[n], second[n]);
    if (j < keys) most[n] = hn::Max(most[n], hn::LoadU(d, scores + j * step + n * kLanes));
    const LanesV before = hn::Load(d, largest + n * kLanes);
    const LanesV now = hn::Max(before, most[n]);
    hn::Store(now, d, largest + n * kLanes);
    // While no key may be seen, weights are relative to 0, which makes all of them 0.
    most[n] = hn::IfThenZeroElse(hn::Eq(now, never), now);
    const LanesV kept = hn::IfThenElse(hn::Eq(before, now), hn::Set(d, 1.0f),
                                       PowerOf2(d, hn::Mul(hn::Sub(before, most[n]), to_base_2)));
    hn::Store(kept, d, keep + n * kLanes);
    sums[n] = hn::Mul(hn::Load(d, sum + n * kLanes), kept);
  }
  for (j = 0; j < keys; ++j) {
    for (int n = 0; n < kVectors; ++n) {
      float* score = scores + j * step + n * kLanes;
      // The difference comes first: the product of a large score is rounded by more than any weight is apart.
      const LanesV weight = PowerOf2(d, hn::Mul(hn::Sub(hn::LoadU(d, score), most[n]), to_base_2));
      sums[n] = hn::Add(sums[n], weight);
      hn::StoreU(weight, d, score);
    }
  }
  for (int n = 0; n < kVectors; ++n) hn::Store(sums[n], d, sum + n * kLanes);
}

void Weigh(LaneScores of, LaneSums* sums) {
  std::int64_t i = 0;
  for (; i + 2 * kLanes <= of.width; i += 2 * kLanes)
    WeighLanes<2>(of.keys, of.step, of.data + i, sums->largest + i, sums->sum + i, sums->keep + i);
  for (; i < of.width; i += kLanes)
    WeighLanes<1>(of.keys, of.step, of.data + i, sums->largest + i, sums->sum + i, sums->keep + i);
}

// 32 registers or 16.
#if HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM
constexpr int kMostRows = 8;
#else
constexpr int kMostRows = 6;
#endif

// Calls f with 0, 1, ... as constants. Only elements of arrays with constant indices stay in registers.
template <class F, std::size_t... kIndices>
HWY_INLINE void ForEach(std::index_sequence<kIndices...>, const F& f) {
  (f(std::integral_constant<std::size_t, kIndices>()), ...);
}

// The sums of kRows rows by kVectors vectors of elements from `at` on. Of a single vector, `used` are wanted.
template <std::size_t kRows, std::size_t kVectors>
HWY_NOINLINE void AddTile(const WeightedValues& of, std::int64_t row, const float* HWY_RESTRICT values,
                          std::int64_t step, std::int64_t at, std::int64_t used) {
  const LanesF d;
  constexpr std::make_index_sequence<kRows> kAll;
  constexpr std::make_index_sequence<kVectors> kEach;
  LanesV sums[kRows][kVectors];
  ForEach(kAll, [&](auto i) HWY_ATTR { ForEach(kEach, [&](auto n) HWY_ATTR { sums[i][n] = hn::Zero(d); }); });
  const float* HWY_RESTRICT weights = of.weights.data + row;
  for (std::int64_t k = 0; k < of.weights.keys; ++k, weights += of.weights.step, values += step) {
    LanesV value[kVectors];
    ForEach(kEach, [&](auto n) HWY_ATTR { value[n] = hn::LoadU(d, values + n * kLanes); });
    ForEach(kAll, [&](auto i) HWY_ATTR {
      const LanesV weight = hn::Set(d, weights[i]);
      ForEach(kEach, [&](auto n) HWY_ATTR { sums[i][n] = hn::MulAdd(weight, value[n], sums[i][n]); });
    });
  }
  ForEach(kAll, [&](auto i) HWY_ATTR {
    HWY_ALIGN float edge[kLanes];
    float* const out = of.out[row + i] + at;
    const bool whole = kVectors > 1 || used == kLanes;
    float* const to = whole ? out : edge;
    if (of.keep != nullptr) {
      if (!whole) std::fill(std::copy_n(out, used, edge), edge + kLanes, 0.0F);
      const LanesV keep = hn::Set(d, of.keep[row + i]);
      ForEach(kEach, [&](auto n) HWY_ATTR {
        sums[i][n] = hn::MulAdd(hn::LoadU(d, to + n * kLanes), keep, sums[i][n]);
      });
    }
    const LanesV factor = hn::Set(d, of.factor != nullptr ? of.factor[row + i] : 1.0F);
    ForEach(kEach, [&](auto n) HWY_ATTR { hn::StoreU(hn::Mul(sums[i][n], factor), d, to + n * kLanes); });
    if (!whole) std::copy_n(edge, used, out);
  });
}

template <std::size_t kVectors>
void AddRows(const WeightedValues& of, const float* values, std::int64_t step, std::int64_t at,
             std::int64_t used) {
  constexpr int kMost = kVectors > 2 ? kMostRows / 2 : kMostRows;
  using Add =
      void (*)(const WeightedValues&, std::int64_t, const float*, std::int64_t, std::int64_t, std::int64_t);
  constexpr auto kAdds = []<std::size_t... kIndices>(std::index_sequence<kIndices...>) {
    return std::array<Add, kMost>{&AddTile<kIndices + 1, kVectors>...};
  }
  (std::make_index_sequence<kMost>());
  for (std::int64_t row = 0; row < of.rows;) {
    const int count = RowsOfTile(of.rows - row, kMost);
    kAdds[static_cast<std::size_t>(count - 1)](of, row, values, step, at, used);
    row += count;
  }
}

// `used` elements of all values from `at` on, with 0 behind them up to `width`.
HWY_INLINE void PackValues(const WeightedValues& of, std::int64_t at, std::int64_t used, std::int64_t width,
                           float* to) {
  for (std::int64_t k = 0; k < of.weights.keys; ++k, to += width)
    std::fill(std::copy_n(of.values + k * of.step + at, used, to), to + width, 0.0F);
}

// The last elements of the values go through a matrix of their own. So do values that lie far apart, where
// they are read often: they would share few sets of the first cache.
void AddValues(const WeightedValues& of) {
  HWY_ALIGN float packed[kMostBlockKeys * 2 * kLanes];
  std::int64_t at = 0;
  // Few rows by more vectors, since each sum waits for the one before.
  if (of.rows <= kMostRows / 2) {
    for (; at + 4 * kLanes <= of.size; at += 4 * kLanes)
      AddRows<4>(of, of.values + at, of.step, at, 4 * kLanes);
  }
  const bool apart = of.step > of.size && of.rows > 2 * kMostRows;
  for (; at + 2 * kLanes <= of.size; at += 2 * kLanes) {
    if (apart) PackValues(of, at, 2 * kLanes, 2 * kLanes, packed);
    AddRows<2>(of, apart ? packed : of.values + at, apart ? 2 * kLanes : of.step, at, 2 * kLanes);
  }
  for (; at + kLanes <= of.size; at += kLanes) AddRows<1>(of, of.values + at, of.step, at, kLanes);
  if (at == of.size) return;
  PackValues(of, at, of.size - at, kLanes, packed);
  AddRows<1>(of, packed, kLanes, at, of.size - at);
}

AttentionLanes AttentionLanesOfTarget() {
  return {&TurnRows, &AddTerms, &ChooseScores, &WidenBytes, &HideKeys, &Weigh, &AddValues};
}

}  // namespace rewire::kernel::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rewire::kernel::cpu {

HWY_EXPORT(AttentionLanesOfTarget);

AttentionLanes ChooseAttentionLanes() { return HWY_DYNAMIC_DISPATCH(AttentionLanesOfTarget)(); }

const AttentionLanes& BestAttentionLanes() {
  static const AttentionLanes kBest = ChooseAttentionLanes();
  return kBest;
}

}  // namespace rewire::kernel::cpu
#endif
