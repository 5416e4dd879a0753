// SPDX-License-Identifier: Apache-2.0
// Compiled once for each instruction set; see Highway's foreach_target.h.
#include "rewire/kernels/cpu/convolution/winograd/winograd_transforms.h"

#include <algorithm>
#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "rewire/kernels/cpu/convolution/winograd/winograd_transforms.cc"
#include <hwy/foreach_target.h>
// Behind it.
#include "rewire/kernels/cpu/elementwise/activated-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rewire::kernel::cpu::HWY_NAMESPACE {

// The square root of 2, and half of it.
constexpr float kRoot = 1.41421356F, kHalfRoot = 0.70710678F;

// Six values to six points; `step` apart in both.
template <class D, class V = hn::Vec<D>>
HWY_INLINE void TransformInputs(D d, const V* from, V* to, std::int64_t step) {
  const V root = hn::Set(d, kRoot), half_root = hn::Set(d, kHalfRoot), more = hn::Set(d, 2.5f);
  const V d0 = from[0], d1 = from[step], d2 = from[2 * step], d3 = from[3 * step], d4 = from[4 * step],
          d5 = from[5 * step];
  const V near_even = hn::NegMulAdd(hn::Set(d, 2.0f), d2, d4);
  const V near_odd = hn::NegMulAdd(root, d1, hn::Mul(half_root, d3));
  const V far_even = hn::NegMulAdd(hn::Set(d, 0.5f), d2, d4);
  const V far_odd = hn::NegMulAdd(half_root, d1, hn::Mul(root, d3));
  to[0] = hn::Add(d0, hn::NegMulAdd(more, d2, d4));
  to[step] = hn::Add(near_even, near_odd);
  to[2 * step] = hn::Sub(near_even, near_odd);
  to[3 * step] = hn::Add(far_even, far_odd);
  to[4 * step] = hn::Sub(far_even, far_odd);
  to[5 * step] = hn::Add(d1, hn::NegMulAdd(more, d3, d5));
}

// Six points to four values.
template <class D, class V = hn::Vec<D>>
HWY_INLINE void TransformOutputs(D d, const V* from, V* to, std::int64_t to_step) {
  const V near_sum = hn::Add(from[1], from[2]), near_difference = hn::Sub(from[1], from[2]);
  const V far_sum = hn::Add(from[3], from[4]), far_difference = hn::Sub(from[3], from[4]);
  to[0] = hn::Add(hn::Add(from[0], near_sum), far_sum);
  to[to_step] =
      hn::MulAdd(hn::Set(d, kRoot), far_difference, hn::Mul(hn::Set(d, kHalfRoot), near_difference));
  to[2 * to_step] = hn::MulAdd(hn::Set(d, 2.0f), far_sum, hn::Mul(hn::Set(d, 0.5f), near_sum));
  to[3 * to_step] = hn::MulAdd(hn::Set(d, 2 * kRoot), far_difference,
                               hn::MulAdd(hn::Set(d, kHalfRoot / 2), near_difference, from[5]));
}

// A vector of channels from `c` on.
template <class D, class V = hn::Vec<D>>
HWY_INLINE void TransformInputChannels(D d, const WinogradInput& tile, std::int64_t c) {
  V points[kWinogradPoints];
  for (std::int64_t i = 0; i < kWinogradPoints; ++i) points[i] = hn::LoadU(d, tile.from[i] + c);
  for (std::int64_t j = 0; j < kWinogradInputs; ++j)
    TransformInputs(d, points + j, points + j, kWinogradInputs);
  for (std::int64_t i = 0; i < kWinogradInputs; ++i) {
    V row[kWinogradInputs];
    TransformInputs(d, points + i * kWinogradInputs, row, 1);
    for (std::int64_t j = 0; j < kWinogradInputs; ++j)
      hn::StoreU(row[j], d, tile.to + (i * kWinogradInputs + j) * tile.step + c);
  }
}

template <class D, class F, class V = hn::Vec<D>>
HWY_INLINE void TransformOutputChannels(D d, const WinogradOutput& tile, std::int64_t c, const F& f) {
  V columns[kWinogradOutputs * kWinogradInputs];
  for (std::int64_t j = 0; j < kWinogradInputs; ++j) {
    V points[kWinogradInputs];
    for (std::int64_t i = 0; i < kWinogradInputs; ++i)
      points[i] = hn::LoadU(d, tile.from + (i * kWinogradInputs + j) * tile.step + c);
    TransformOutputs(d, points, columns + j, kWinogradInputs);
  }
  const V bias = tile.bias == nullptr ? hn::Zero(d) : hn::LoadU(d, tile.bias + c);
  for (std::int64_t i = 0; i < tile.rows; ++i) {
    V row[kWinogradOutputs];
    TransformOutputs(d, columns + i * kWinogradInputs, row, 1);
    for (std::int64_t j = 0; j < tile.columns; ++j) {
      const std::int64_t at = i * tile.row_step + j * tile.column_step + c;
      V value = hn::Add(row[j], bias);
      if (tile.addend != nullptr) value = hn::Add(value, hn::LoadU(d, tile.addend + at));
      hn::StoreU(f(d, value), d, tile.out + at);
    }
  }
}

// Calls transform(d, c) for vectors that cover the channels: as wide as there are, and narrower ones for what
// is left.
template <typename Transform>
HWY_INLINE void ForEachVector(std::int64_t channels, const Transform& transform) {
  std::int64_t c = 0;
  const auto cover = [&](auto d) {
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    for (; c + lanes <= channels; c += lanes) transform(d, c);
  };
  cover(hn::CappedTag<float, 16>());
  cover(hn::CappedTag<float, 8>());
  cover(hn::CappedTag<float, 4>());
  cover(hn::CappedTag<float, 1>());
}

void TransformInput(const WinogradInput& tile) {
  ForEachVector(tile.channels, [&](auto d, std::int64_t c) { TransformInputChannels(d, tile, c); });
}

struct Unchanged {
  template <class D, class V = hn::Vec<D>>
  HWY_INLINE V operator()(D, V x) const {
    return x;
  }
};

// The activations of most convolutions are compiled into the transform, which is unrolled for each: about 4
// KB of code.
void TransformOutput(const WinogradOutput& tile) {
  const Activation& activation = tile.activation;
  const auto store = [&](const auto& f) {
    ForEachVector(tile.channels, [&](auto d, std::int64_t c) { TransformOutputChannels(d, tile, c, f); });
  };
  if (!activation.moves && activation.kind == Activation::kRelu) return store(ReluOfVector());
  if (!activation.moves && activation.kind == Activation::kClip)
    return store(ClipOfVector{activation.alpha, activation.beta});
  if (!activation.moves && activation.kind == Activation::kLeakyRelu)
    return store(PReluOfVector{activation.alpha});
  store(Unchanged());
  if (!activation.moves && activation.kind == Activation::kNone) return;
  for (std::int64_t i = 0; i < tile.rows; ++i) {
    ActivateRows(hn::CappedTag<float, 16>(), activation, tile.out + i * tile.row_step, tile.columns,
                 tile.column_step, tile.channels);
  }
}

WinogradTransforms TransformsOfTarget() { return {&TransformInput, &TransformOutput}; }

}  // namespace rewire::kernel::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rewire::kernel::cpu {

HWY_EXPORT(TransformsOfTarget);

WinogradTransforms ChooseWinogradTransforms() { return HWY_DYNAMIC_DISPATCH(TransformsOfTarget)(); }

const WinogradTransforms& BestWinogradTransforms() {
  static const WinogradTransforms kBest = ChooseWinogradTransforms();
  return kBest;
}

}  // namespace rewire::kernel::cpu
#endif
