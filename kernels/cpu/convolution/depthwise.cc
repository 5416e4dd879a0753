// SPDX-License-Identifier: Apache-2.0
// Compiled once for each instruction set; see Highway's foreach_target.h.
#include "rewire/kernels/cpu/convolution/depthwise.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "rewire/kernels/cpu/convolution/depthwise.cc"
#include <hwy/foreach_target.h>
// Behind it.
#include "rewire/kernels/cpu/elementwise/activated-inl.h"
#include "rewire/kernels/cpu/math/bf16-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rewire::kernel::cpu::HWY_NAMESPACE {

// Sums of kPositions positions, one behind the other, for a vector of channels.
template <int kPositions, class D>
struct PositionSums {
  using V = hn::Vec<D>;
  V of[kPositions];

  template <class F>
  HWY_INLINE void Apply(D d, const F& f) {
    for (V& sum : of) sum = f(d, sum);
  }
  // Whether that is done: activations of many instructions are not.
  HWY_INLINE bool ActivateShort(D d, const Activation& activation) {
    return VisitShortAndMove(activation, [&](const auto& f) { Apply(d, f); });
  }
  HWY_INLINE void Activate(D d, const Activation& activation) {
    for (V& sum : of) sum = Activated(d, sum, activation);
  }
  HWY_INLINE void Store(D d, float* out, std::int64_t channels) const {
    for (int p = 0; p < kPositions; ++p) hn::StoreU(of[p], d, out + p * channels);
  }
  template <class Rounding>
  HWY_INLINE void StoreRounded(D d, std::uint16_t* out, std::int64_t channels) const {
    for (int p = 0; p < kPositions; ++p) Rounding::Store(d, of[p], out + p * channels);
  }

  // x meets the tap j - p * stride of position p, if there is one.
  template <int kTaps, int kStride, std::size_t kColumn, std::size_t... kPosition>
  HWY_INLINE void AddColumn(V x, const V (&weights)[kTaps], std::index_sequence<kPosition...>) {
    const auto add = [&](auto position) {
      constexpr int kTap = static_cast<int>(kColumn) - static_cast<int>(position()) * kStride;
      if constexpr (kTap >= 0 && kTap < kTaps) of[position()] = hn::MulAdd(weights[kTap], x, of[position()]);
    };
    (add(std::integral_constant<std::size_t, kPosition>()), ...);
  }
  // All pixels of a row of the image that the positions' windows cover, from `pixel` on. Each is loaded once.
  // With kClipped those that the row does not have are left out.
  template <int kTaps, int kStride, bool kClipped, std::size_t... kColumn>
  HWY_INLINE void AddRow(D d, const float* x, const DepthwiseRow& row, std::int64_t pixel,
                         const V (&weights)[kTaps], std::index_sequence<kColumn...>) {
    const auto add = [&](auto column) {
      const std::int64_t at = pixel + static_cast<std::int64_t>(column());
      if (kClipped && (at < 0 || at >= row.pixels)) return;
      AddColumn<kTaps, kStride, column()>(hn::LoadU(d, x + at * row.channels), weights,
                                          std::make_index_sequence<kPositions>());
    };
    (add(std::integral_constant<std::size_t, kColumn>()), ...);
  }
};

// Lanes(d) channels of kPositions positions from `position` on, with any window. Several positions lie
// inside.
template <int kPositions>
struct AnyWindow {
  static constexpr int kCount = kPositions;
  template <class D>
  HWY_INLINE static void Add(D d, const DepthwiseRow& row, std::int64_t position, std::int64_t channel,
                             PositionSums<kPositions, D>& sums) {
    const std::int64_t step = row.stride * row.channels;
    const std::int64_t pixel = row.FirstPixel(position);
    std::int64_t first = 0, last = row.taps;
    if (kPositions == 1 && !row.AreInside(position, 1)) {
      if (pixel < 0) first = (row.dilation - 1 - pixel) / row.dilation;
      last = pixel < row.pixels ? std::min(last, (row.pixels - 1 - pixel) / row.dilation + 1) : 0;
    }
    for (std::int64_t r = 0; r < row.row_count; ++r) {
      std::int64_t x = (pixel + first * row.dilation) * row.channels + channel;
      const float* w = row.weights[r] + first * row.channels + channel;
      for (std::int64_t t = first; t < last; ++t) {
        const auto weight = hn::LoadU(d, w);
        for (int p = 0; p < kPositions; ++p)
          sums.of[p] = hn::MulAdd(weight, hn::LoadU(d, row.rows[r] + x + p * step), sums.of[p]);
        x += row.dilation * row.channels;
        w += row.channels;
      }
    }
  }
};

// The same for rows of kTaps taps, kStride apart, without dilation. Clipped ones may lie partly outside.
template <int kPositions, int kTaps, int kStride, bool kClipped>
struct FixedWindow {
  static constexpr int kCount = kPositions;
  template <class D>
  HWY_INLINE static void Add(D d, const DepthwiseRow& row, std::int64_t position, std::int64_t channel,
                             PositionSums<kPositions, D>& sums) {
    constexpr std::size_t kColumns = (kPositions - 1) * kStride + kTaps;
    for (std::int64_t r = 0; r < row.row_count; ++r) {
      hn::Vec<D> weights[kTaps];
      for (int t = 0; t < kTaps; ++t) weights[t] = hn::LoadU(d, row.weights[r] + t * row.channels + channel);
      sums.template AddRow<kTaps, kStride, kClipped>(d, row.rows[r] + channel, row, row.FirstPixel(position),
                                                     weights, std::make_index_sequence<kColumns>());
    }
  }
};

#if HWY_TARGET == HWY_AVX3
inline bool RoundsByInstruction() {
  static const bool kHasInstructions = HasBf16Instructions();
  return kHasInstructions;
}
#endif

// Activates sums and writes them behind element `to`, whatever the row asks for. All windows share this code,
// and the sums come through memory.
template <int kPositions, class D>
HWY_NOINLINE void FinishAny(D d, const DepthwiseRow& row, std::int64_t to,
                            PositionSums<kPositions, D>& sums) {
  const bool done = sums.ActivateShort(d, row.activation);
  if (row.rounded == nullptr)
    return sums.Store(d, row.out + to, row.channels);  // RunDepthwise does what is not done
  if (!done) sums.Activate(d, row.activation);
#if HWY_TARGET == HWY_AVX3
  if (RoundsByInstruction())
    return sums.template StoreRounded<Bf16ByInstruction>(d, row.rounded + to, row.channels);
#endif
  sums.template StoreRounded<Bf16ByBits>(d, row.rounded + to, row.channels);
}

template <class Window, class D>
HWY_INLINE void RunPositions(D d, const DepthwiseRow& row, std::int64_t position, std::int64_t channel) {
  PositionSums<Window::kCount, D> sums;
  const auto bias = row.bias == nullptr ? hn::Zero(d) : hn::LoadU(d, row.bias + channel);
  for (auto& sum : sums.of) sum = bias;
  Window::Add(d, row, position, channel, sums);
  const std::int64_t to = position * row.channels + channel;
  // Most rows ask for floats, perhaps compared with a bound or two. That is done where the sums are.
  const auto kind = row.activation.kind;
  const bool is_short = kind == Activation::kNone || kind == Activation::kRelu || kind == Activation::kClip;
  if (!is_short || row.activation.moves || row.rounded != nullptr) {
    // A copy, so that the sums themselves have no address and stay in registers.
    PositionSums<Window::kCount, D> copy = sums;
    return FinishAny(d, row, to, copy);
  }
  if (kind == Activation::kRelu)
    sums.Apply(d, ReluOfVector());
  else if (kind == Activation::kClip)
    sums.Apply(d, ClipOfVector{row.activation.alpha, row.activation.beta});
  sums.Store(d, row.out + to, row.channels);
}

// Channels [begin, end) of Window::kCount positions from `position` on. The row has at least as many channels
// as a vector.
template <class Window, class D>
HWY_NOINLINE void RunChannels(D d, const DepthwiseRow& row, std::int64_t position, std::int64_t begin,
                              std::int64_t end) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t c = begin; c < end; c += lanes) {
    // The last vector overlaps the one before it. Only the row's last block of channels has one.
    RunPositions<Window>(d, row, position, c + lanes <= end ? c : row.channels - lanes);
  }
}

// Each column of the image meets eight positions while it is in a register. Where fewer are left, some before
// them are computed once more.
template <int kTaps, int kStride, class D>
HWY_INLINE bool RunFixed(D d, const DepthwiseRow& row, std::int64_t begin, std::int64_t end) {
  if (row.count < 4) return false;
  for (std::int64_t o = 0; o < row.count;) {
    const std::int64_t left = row.count - o;
    if (left <= 4 || row.count < 8) {
      o = std::min(o, row.count - 4);
      RunChannels<FixedWindow<4, kTaps, kStride, true>>(d, row, o, begin, end);
      o += 4;
      continue;
    }
    o = std::min(o, row.count - 8);
    if (row.AreInside(o, 8))
      RunChannels<FixedWindow<8, kTaps, kStride, false>>(d, row, o, begin, end);
    else
      RunChannels<FixedWindow<8, kTaps, kStride, true>>(d, row, o, begin, end);
    o += 8;
  }
  return true;
}

// Windows of 3 and 5 taps are what most models have. Returns whether the row has such.
template <class D>
HWY_INLINE bool RunUsualWindows(D d, const DepthwiseRow& row, std::int64_t begin, std::int64_t end) {
  if (row.dilation != 1) return false;
  if (row.taps == 3 && row.stride == 1) return RunFixed<3, 1>(d, row, begin, end);
  if (row.taps == 3 && row.stride == 2) return RunFixed<3, 2>(d, row, begin, end);
  if (row.taps == 5 && row.stride == 1) return RunFixed<5, 1>(d, row, begin, end);
  if (row.taps == 5 && row.stride == 2) return RunFixed<5, 2>(d, row, begin, end);
  return false;
}

template <class D>
HWY_INLINE void RunBlock(D d, const DepthwiseRow& row, std::int64_t begin, std::int64_t end) {
  if constexpr (hn::MaxLanes(D()) >= 8) {
    if (RunUsualWindows(d, row, begin, end)) return;
  }
  for (std::int64_t o = 0; o < row.count;) {
    if (row.count - o >= 4 && row.AreInside(o, 4)) {
      RunChannels<AnyWindow<4>>(d, row, o, begin, end);
      o += 4;
    } else {
      RunChannels<AnyWindow<1>>(d, row, o++, begin, end);
    }
  }
}

// Rows of few channels take narrower vectors.
template <class D>
HWY_INLINE void RunBlocks(D d, const DepthwiseRow& row) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  if constexpr (hn::MaxLanes(D()) > 1) {
    if (row.channels < lanes) return RunBlocks(hn::CappedTag<float, hn::MaxLanes(D()) / 2>(), row);
  }
  // So many channels at a time that their weights take half of the first cache. More of them are read at once
  // from each pixel, which the CPU then fetches ahead.
  constexpr std::int64_t kWeights = 4096, kLeastBlock = 64;
  const std::int64_t taps = std::max<std::int64_t>(1, row.row_count * row.taps);
  const std::int64_t block = std::max(kLeastBlock, kWeights / taps / kLeastBlock * kLeastBlock);
  for (std::int64_t begin = 0; begin < row.channels; begin += block)
    RunBlock(d, row, begin, std::min(begin + block, row.channels));
}

void RunDepthwise(const DepthwiseRow& row) {
  const hn::ScalableTag<float> d;
  RunBlocks(d, row);
  if (row.rounded == nullptr && !VisitShort(row.activation, [](const auto&) {}))
    ActivateRows(d, row.activation, row.out, 1, 0, row.count * row.channels);
}

DepthwiseKernel DepthwiseOfTarget() { return &RunDepthwise; }

void RepeatEachOfTarget(const float* x, std::int64_t count, std::int64_t times, float* to) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; times == 2 && i + lanes <= count; i += lanes) {
    const auto values = hn::LoadU(d, x + i);
    hn::StoreInterleaved2(values, values, d, to + 2 * i);
  }
  // Each vector writes over what the one before has too much.
  for (; times < lanes && i * times + lanes <= count * times; ++i)
    hn::StoreU(hn::Set(d, x[i]), d, to + i * times);
  for (; i < count; ++i) std::fill(to + i * times, to + (i + 1) * times, x[i]);
}

}  // namespace rewire::kernel::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rewire::kernel::cpu {

HWY_EXPORT(DepthwiseOfTarget);
HWY_EXPORT(RepeatEachOfTarget);

void RepeatEach(const float* x, std::int64_t count, std::int64_t times, float* to) {
  HWY_DYNAMIC_DISPATCH(RepeatEachOfTarget)(x, count, times, to);
}

DepthwiseKernel ChooseDepthwiseKernel() { return HWY_DYNAMIC_DISPATCH(DepthwiseOfTarget)(); }

DepthwiseKernel BestDepthwiseKernel() {
  static const DepthwiseKernel kBest = ChooseDepthwiseKernel();
  return kBest;
}

}  // namespace rewire::kernel::cpu
#endif
