// SPDX-License-Identifier: Apache-2.0
// Compiled once for each instruction set; see Highway's foreach_target.h.
#include "rewire/kernels/cpu/convolution/depthwise.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "rewire/kernels/cpu/convolution/depthwise.cc"
#include <hwy/foreach_target.h>
// Behind it.
#include "rewire/kernels/cpu/elementwise/activated-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rewire::kernel::cpu::HWY_NAMESPACE {

// Lanes(d) channels of the position at `out`, and of the three behind it where there are kPositions = 4.
template <int kPositions, class D>
HWY_INLINE void RunPositions(D d, const DepthwiseRow& row, std::int64_t position, std::int64_t channel) {
  using V = hn::Vec<D>;
  const std::int64_t step = row.stride * row.channels;
  const std::int64_t from = position * step + channel;
  V s0 = row.bias == nullptr ? hn::Zero(d) : hn::LoadU(d, row.bias + channel);
  V s1 = s0, s2 = s0, s3 = s0;
  for (std::int64_t r = 0; r < row.row_count; ++r) {
    const float* x = row.rows[r] + from;
    const float* w = row.weights[r] + channel;
    for (std::int64_t t = 0; t < row.taps; ++t) {
      const V weight = hn::LoadU(d, w);
      s0 = hn::MulAdd(weight, hn::LoadU(d, x), s0);
      if constexpr (kPositions == 4) {
        s1 = hn::MulAdd(weight, hn::LoadU(d, x + step), s1);
        s2 = hn::MulAdd(weight, hn::LoadU(d, x + 2 * step), s2);
        s3 = hn::MulAdd(weight, hn::LoadU(d, x + 3 * step), s3);
      }
      x += row.dilation * row.channels;
      w += row.channels;
    }
  }
  if (row.activation.kind != Activation::kNone) {
    s0 = Activated(d, s0, row.activation);
    if constexpr (kPositions == 4) {
      s1 = Activated(d, s1, row.activation);
      s2 = Activated(d, s2, row.activation);
      s3 = Activated(d, s3, row.activation);
    }
  }
  float* out = row.out + position * row.channels + channel;
  hn::StoreU(s0, d, out);
  if constexpr (kPositions == 4) {
    hn::StoreU(s1, d, out + row.channels);
    hn::StoreU(s2, d, out + 2 * row.channels);
    hn::StoreU(s3, d, out + 3 * row.channels);
  }
}

// Channels from `begin` on; those of the last, partial vector only where `end` is that of the row. A row of
// fewer channels than a vector has takes narrower ones.
template <int kPositions, class D>
HWY_INLINE void RunVectors(D d, const DepthwiseRow& row, std::int64_t position, std::int64_t begin,
                           std::int64_t end) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t c = begin;
  for (; c + lanes <= end; c += lanes) RunPositions<kPositions>(d, row, position, c);
  if (c == end) return;
  if (row.channels >= lanes) {
    // The last vector overlaps the one before it.
    RunPositions<kPositions>(d, row, position, row.channels - lanes);
  } else if constexpr (hn::MaxLanes(D()) > 1) {
    RunVectors<kPositions>(hn::CappedTag<float, hn::MaxLanes(D()) / 2>(), row, position, c, end);
  }
}

template <int kPositions>
HWY_INLINE void RunChannels(const DepthwiseRow& row, std::int64_t position, std::int64_t begin,
                            std::int64_t end) {
  RunVectors<kPositions>(hn::ScalableTag<float>(), row, position, begin, end);
}

// So many channels at a time that their weights stay in the first cache.
void RunDepthwise(const DepthwiseRow& row) {
  constexpr std::int64_t kBlock = 64;
  for (std::int64_t begin = 0; begin < row.channels; begin += kBlock) {
    const std::int64_t end = std::min(begin + kBlock, row.channels);
    std::int64_t o = 0;
    for (; o + 4 <= row.count; o += 4) RunChannels<4>(row, o, begin, end);
    for (; o < row.count; ++o) RunChannels<1>(row, o, begin, end);
  }
}

DepthwiseKernel DepthwiseOfTarget() { return &RunDepthwise; }

}  // namespace rewire::kernel::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rewire::kernel::cpu {

HWY_EXPORT(DepthwiseOfTarget);

DepthwiseKernel ChooseDepthwiseKernel() { return HWY_DYNAMIC_DISPATCH(DepthwiseOfTarget)(); }

DepthwiseKernel BestDepthwiseKernel() {
  static const DepthwiseKernel kBest = ChooseDepthwiseKernel();
  return kBest;
}

}  // namespace rewire::kernel::cpu
#endif
