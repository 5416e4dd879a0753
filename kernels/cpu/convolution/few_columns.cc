// SPDX-License-Identifier: Apache-2.0
// Compiled once for each instruction set; see Highway's foreach_target.h.
#include "rewire/kernels/cpu/convolution/few_columns.h"

#include <algorithm>

#include "rewire/kernels/cpu/product/panels/panels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "rewire/kernels/cpu/convolution/few_columns.cc"
#include <hwy/foreach_target.h>
// Behind it.
#include "rewire/kernels/cpu/elementwise/activated-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rewire::kernel::cpu::HWY_NAMESPACE {

using FewD = hn::CappedTag<float, kHalfPanel>;
using FewV = hn::Vec<FewD>;
constexpr std::int64_t kFewLanes = hn::MaxLanes(FewD());

#if HWY_TARGET == HWY_SCALAR

constexpr std::int64_t kChannelsAtOnce = 1;

HWY_INLINE void LoadChannels(const float* x, std::int64_t, FewV* channels) {
  channels[0] = hn::LoadU(FewD(), x);
}

#else

constexpr std::int64_t kChannelsAtOnce = 4;  // a block of 128 bits

// Four floats of every fourth position, each a block of the vector. Positions are `step` apart.
template <class D>
HWY_INLINE hn::Vec<D> LoadBlocks(D d, const float* x, std::int64_t step) {
  if constexpr (hn::MaxLanes(D()) == 4) {
    return hn::LoadU(d, x);
  } else {
    const hn::Half<D> half;
    const auto lanes = static_cast<std::int64_t>(hn::MaxLanes(half));
    return hn::Combine(d, LoadBlocks(half, x + lanes * step, step), LoadBlocks(half, x, step));
  }
}

// Four channels as vectors of positions. Each block of 4 x 4 is transposed where it lies.
HWY_INLINE void LoadChannels(const float* x, std::int64_t step, FewV* channels) {
  const FewD d;
  const hn::Repartition<std::uint64_t, FewD> wide;
  const FewV a = LoadBlocks(d, x, step), b = LoadBlocks(d, x + step, step);
  const FewV c = LoadBlocks(d, x + 2 * step, step), e = LoadBlocks(d, x + 3 * step, step);
  const auto low_ab = hn::BitCast(wide, hn::InterleaveLower(d, a, b));
  const auto low_ce = hn::BitCast(wide, hn::InterleaveLower(d, c, e));
  const auto high_ab = hn::BitCast(wide, hn::InterleaveUpper(d, a, b));
  const auto high_ce = hn::BitCast(wide, hn::InterleaveUpper(d, c, e));
  channels[0] = hn::BitCast(d, hn::InterleaveLower(wide, low_ab, low_ce));
  channels[1] = hn::BitCast(d, hn::InterleaveUpper(wide, low_ab, low_ce));
  channels[2] = hn::BitCast(d, hn::InterleaveLower(wide, high_ab, high_ce));
  channels[3] = hn::BitCast(d, hn::InterleaveUpper(wide, high_ab, high_ce));
}

#endif

// Positions that are fetched while others are multiplied: x is seldom in the second cache, and is read in an
// order that no CPU foresees.
constexpr std::int64_t kVectorsAhead = 4;

// As many floats as LoadChannels reads.
HWY_INLINE void FetchAhead(const float* x) {
  constexpr std::int64_t kLine = 16;  // floats
  for (std::int64_t i = 0; i < kFewLanes * kChannelsAtOnce; i += kLine) __builtin_prefetch(x + i);
}

// LoadChannels for `count` positions and `used` channels, with zeros in place of the others.
HWY_INLINE void LoadEdge(const float* x, std::int64_t step, std::int64_t count, std::int64_t used,
                         FewV* channels) {
  float edge[kFewLanes * kChannelsAtOnce] = {};
  for (std::int64_t i = 0; i < count; ++i) std::copy_n(x + i * step, used, edge + i * kChannelsAtOnce);
  LoadChannels(edge, kChannelsAtOnce, channels);
}

// The columns of kFewLanes positions side by side.
template <int kColumns>
HWY_INLINE void StoreColumns(const FewV* columns, float* out) {
  const FewD d;
#if HWY_TARGET == HWY_SCALAR
  for (int j = 0; j < kColumns; ++j) hn::StoreU(columns[j], d, out + j);
#else
  if constexpr (kColumns == 1) hn::StoreU(columns[0], d, out);
  if constexpr (kColumns == 2) hn::StoreInterleaved2(columns[0], columns[1], d, out);
  if constexpr (kColumns == 3) hn::StoreInterleaved3(columns[0], columns[1], columns[2], d, out);
  if constexpr (kColumns == 4) hn::StoreInterleaved4(columns[0], columns[1], columns[2], columns[3], d, out);
#endif
}

// Adds the products of `count` channels from `k` on, which `channels` holds as vectors of positions.
template <int kRows, int kColumns>
HWY_INLINE void AddChannels(const FewColumns& product, const float* w, std::int64_t k, std::int64_t count,
                            const FewV* channels, FewV (&sums)[kRows][kColumns]) {
  for (std::int64_t i = 0; i < count; ++i) {
    for (int r = 0; r < kRows; ++r) {
      const float* weights = w + (r * product.channels + k + i) * kHalfPanel;
      for (int j = 0; j < kColumns; ++j)
        sums[r][j] = hn::MulAdd(hn::Set(FewD(), weights[j]), channels[i], sums[r][j]);
    }
  }
}

// kRows rows from `row` on for `count` positions from `first` on, at most kFewLanes.
template <int kRows, int kColumns>
HWY_NOINLINE void RunPositions(const FewColumns& product, std::int64_t row, std::int64_t first,
                               std::int64_t count) {
  const FewD d;
  const std::int64_t step = product.channels;
  FewV sums[kRows][kColumns];
  for (int j = 0; j < kColumns; ++j) {
    for (int r = 0; r < kRows; ++r) sums[r][j] = hn::Set(d, product.bias[j]);
  }
  const float* x = product.x + first * step;
  const float* w = product.w + row * step * kHalfPanel;
  FewV channels[kChannelsAtOnce];
  std::int64_t k = 0;
  for (; count == kFewLanes && k + kChannelsAtOnce <= step; k += kChannelsAtOnce) {
    FetchAhead(x + (kVectorsAhead * step + k) * kFewLanes);
    LoadChannels(x + k, step, channels);
    AddChannels<kRows, kColumns>(product, w, k, kChannelsAtOnce, channels, sums);
  }
  for (; k < step; k += kChannelsAtOnce) {
    const std::int64_t used = std::min(kChannelsAtOnce, step - k);
    LoadEdge(x + k, step, count, used, channels);
    AddChannels<kRows, kColumns>(product, w, k, used, channels, sums);
  }
  for (int r = 0; r < kRows; ++r) {
    if (!product.activation.IsNone()) {
      for (FewV& sum : sums[r]) sum = Activated(d, sum, product.activation);
    }
    float* out = product.out + (row + r) * product.row_step + first * kColumns;
    if (count == kFewLanes) {
      StoreColumns<kColumns>(sums[r], out);
    } else {
      float edge[kFewLanes * kColumns];
      StoreColumns<kColumns>(sums[r], edge);
      std::copy_n(edge, count * kColumns, out);
    }
  }
}

// Two rows at once, which load and transpose x once. The last positions are computed with some before them
// once more.
template <int kColumns>
void RunFewColumns(const FewColumns& product) {
  const std::int64_t count = std::min(kFewLanes, product.positions);
  for (std::int64_t at = 0; at < product.positions; at += kFewLanes) {
    const std::int64_t first = std::min(at, product.positions - count);
    std::int64_t row = 0;
    for (; row + 2 <= product.rows; row += 2) RunPositions<2, kColumns>(product, row, first, count);
    if (row < product.rows) RunPositions<1, kColumns>(product, row, first, count);
  }
}

void RunAnyColumns(const FewColumns& product) {
  switch (product.columns) {
    case 1:
      return RunFewColumns<1>(product);
    case 2:
      return RunFewColumns<2>(product);
    case 3:
      return RunFewColumns<3>(product);
    case 4:
      return RunFewColumns<4>(product);
    default:
      return;
  }
}

FewColumnsFunction FewColumnsOfTarget() { return &RunAnyColumns; }

}  // namespace rewire::kernel::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rewire::kernel::cpu {

HWY_EXPORT(FewColumnsOfTarget);

FewColumnsFunction ChooseFewColumns() { return HWY_DYNAMIC_DISPATCH(FewColumnsOfTarget)(); }

FewColumnsFunction BestFewColumns() {
  static const FewColumnsFunction kBest = ChooseFewColumns();
  return kBest;
}

}  // namespace rewire::kernel::cpu
#endif
