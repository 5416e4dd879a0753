// SPDX-License-Identifier: Apache-2.0
// Compiled once for each instruction set; see Highway's foreach_target.h.
#include "rewire/kernels/cpu/product/pack_pairs.h"

#include <algorithm>
#include <bit>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "rewire/kernels/cpu/product/pack_pairs.cc"
#include <hwy/foreach_target.h>
// Behind it.
#include "rewire/kernels/cpu/math/bf16-inl.h"
#include "rewire/kernels/cpu/support/half.h"
#include "rewire/kernels/cpu/support/parallel.h"

#ifndef REWIRE_ROUND_LINES_
#define REWIRE_ROUND_LINES_
namespace rewire::kernel::cpu {
using RoundLines = void (*)(const float* from, std::int64_t count, std::uint16_t* to);
}
#endif

HWY_BEFORE_NAMESPACE();
namespace rewire::kernel::cpu::HWY_NAMESPACE {
inline void RoundOnes(const float* HWY_RESTRICT from, std::int64_t count, std::uint16_t* HWY_RESTRICT to) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = BFloat16(from[i]).bits;
}

template <class Way>
HWY_INLINE void RoundFloatsBy(const float* HWY_RESTRICT from, std::int64_t count,
                              std::uint16_t* HWY_RESTRICT to) {
  std::int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::CappedTag<float, 16> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (; i + lanes <= count; i += lanes) Way::Store(d, hn::LoadU(d, from + i), to + i);
#endif
  RoundOnes(from + i, count - i, to + i);
}

#if HWY_TARGET == HWY_AVX3
// Rows of one float, whose pairs are the rounded float with 0 above it.
template <class Way>
void RoundSingles(const float* HWY_RESTRICT from, std::int64_t rows, std::uint16_t* HWY_RESTRICT to) {
  const hn::CappedTag<float, 16> d;
  const hn::RebindToUnsigned<hn::CappedTag<float, 16>> pairs;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t i = 0; i < rows; i += lanes) {
    const auto used = static_cast<std::size_t>(std::min(lanes, rows - i));
    const auto value = hn::MaskedLoad(hn::FirstN(d, used), d, from + i);
    hn::BlendedStore(hn::PromoteTo(pairs, Way::Round(d, value)), hn::FirstN(pairs, used), pairs,
                     reinterpret_cast<std::uint32_t*>(to + 2 * i));
  }
}
#endif

template <class Way>
void RoundRowsBy(const float* from, std::int64_t rows, std::int64_t depth, std::uint16_t* to) {
  if (depth % 2 == 0) return RoundFloatsBy<Way>(from, rows * depth, to);
#if HWY_TARGET == HWY_AVX3
  if (depth == 1) return RoundSingles<Way>(from, rows, to);
  // Lanes that a mask leaves out are neither read nor written.
  const hn::CappedTag<float, 16> d;
  const hn::Rebind<std::uint16_t, hn::CappedTag<float, 16>> narrow;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d)), rest = depth % lanes;
  const auto read = hn::FirstN(d, static_cast<std::size_t>(rest));
  const auto written = hn::FirstN(narrow, static_cast<std::size_t>(rest) + 1);
  for (std::int64_t i = 0; i < rows; ++i, from += depth, to += depth + 1) {
    std::int64_t k = 0;
    for (; k + lanes <= depth; k += lanes) Way::Store(d, hn::LoadU(d, from + k), to + k);
    hn::BlendedStore(Way::Round(d, hn::MaskedLoad(read, d, from + k)), written, narrow, to + k);
  }
#else
  // A row may be read and written beyond its end where other rows follow, which are written afterwards.
  const std::int64_t rounded = (depth + 15) / 16 * 16;
  for (std::int64_t i = 0; i < rows; ++i, from += depth, to += depth + 1) {
    RoundFloatsBy<Way>(from, rounded <= (rows - i) * depth ? rounded : depth, to);
    to[depth] = 0;
  }
#endif
}

template <class Way>
void RoundLinesBy(const float* from, std::int64_t count, std::uint16_t* to) {
  constexpr std::int64_t kLine = 32;
#if HWY_TARGET == HWY_SCALAR
  RoundOnes(from, count, to);
  std::fill(to + count, to + (count + kLine - 1) / kLine * kLine, std::uint16_t{0});
#else
  using D16 = hn::CappedTag<float, 16>;
  const D16 d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) Way::Store(d, hn::LoadU(d, from + i), to + i);
  for (; i % kLine != 0 || i < count; i += lanes) {
#if HWY_TARGET == HWY_AVX3
    // Lanes that the mask leaves out are not read.
    const auto left = static_cast<std::size_t>(std::max<std::int64_t>(0, count - i));
    const auto rest = hn::MaskedLoad(hn::FirstN(d, left), d, from + i);
#else
    HWY_ALIGN float ones[hn::MaxLanes(D16())] = {};
    if (i < count) std::copy_n(from + i, count - i, ones);
    const auto rest = hn::Load(d, ones);
#endif
    Way::Store(d, rest, to + i);
  }
#endif
}

RoundLines RoundLinesOfTarget() {
#if HWY_TARGET == HWY_AVX3
  if (HasBf16Instructions()) return &RoundLinesBy<Bf16ByInstruction>;
#endif
  return &RoundLinesBy<Bf16ByBits>;
}

RoundFloats RoundFloatsOfTarget([[maybe_unused]] bool any_instruction) {
#if HWY_TARGET == HWY_AVX3
  if (any_instruction && HasBf16Instructions()) return &RoundRowsBy<Bf16ByInstruction>;
#endif
  return &RoundRowsBy<Bf16ByBits>;
}

}  // namespace rewire::kernel::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rewire::kernel::cpu {

HWY_EXPORT(RoundFloatsOfTarget);
HWY_EXPORT(RoundLinesOfTarget);

RoundFloats ChooseRoundFloats(bool any_instruction) {
  return HWY_DYNAMIC_DISPATCH(RoundFloatsOfTarget)(any_instruction);
}

void RoundToLines(const float* from, std::int64_t count, std::byte* to) {
  static const RoundLines kRound = HWY_DYNAMIC_DISPATCH(RoundLinesOfTarget)();
  kRound(from, count, reinterpret_cast<std::uint16_t*>(to));
}

bool RoundRows(const float* from, std::int64_t rows, std::int64_t depth, float* to, Pace& pace) {
  static const RoundFloats kRound = ChooseRoundFloats(true);
  auto* pairs = reinterpret_cast<std::uint16_t*>(to);
  // Any even depth will do where nothing is filled up: a row may be longer than what goes without asking.
  if (depth % 2 == 0) {
    return pace.For(Times(rows, depth / 2), 2, [&](std::int64_t begin, std::int64_t end) {
      kRound(from + 2 * begin, end - begin, 2, pairs + 2 * begin);
    });
  }
  return pace.For(rows, depth, [&](std::int64_t begin, std::int64_t end) {
    kRound(from + begin * depth, end - begin, depth, pairs + begin * (depth + 1));
  });
}

Status RoundAllRows(const float* from, std::int64_t rows, std::int64_t depth, float* to) {
  return ParallelFor(
      rows, GrainOf(16 * kGrain, depth), [&](std::int64_t begin, std::int64_t end, Pace& pace) {
        static_cast<void>(
            RoundRows(from + begin * depth, end - begin, depth, to + begin * PairsOf(depth), pace));
      });
}

}  // namespace rewire::kernel::cpu
#endif
