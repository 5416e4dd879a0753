// SPDX-License-Identifier: Apache-2.0
// Compiled once for each instruction set; see Highway's foreach_target.h.
#include "rewire/kernels/cpu/product/pair_rows.h"

#include <algorithm>
#include <bit>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "rewire/kernels/cpu/product/pair_rows.cc"
#include <hwy/foreach_target.h>
// Behind it.
#include <hwy/highway.h>
#include "rewire/kernels/cpu/support/half.h"
#include "rewire/kernels/cpu/support/parallel.h"

HWY_BEFORE_NAMESPACE();
namespace rewire::kernel::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

inline void RoundOnes(const float* HWY_RESTRICT from, std::int64_t count, std::uint16_t* HWY_RESTRICT to) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = BFloat16(from[i]).bits;
}

// By the bits, as BFloat16 does.
HWY_INLINE void RoundByBits(const float* HWY_RESTRICT from, std::int64_t count,
                            std::uint16_t* HWY_RESTRICT to) {
  std::int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::ScalableTag<std::int32_t> d;
  const hn::Rebind<std::uint16_t, decltype(d)> narrow;
  const hn::RebindToUnsigned<decltype(d)> u;
  const hn::RebindToFloat<decltype(d)> f;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (; i + lanes <= count; i += lanes) {
    const auto value = hn::LoadU(f, from + i);
    const auto bits = hn::BitCast(u, value);
    const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(u, 1));
    const auto rounded = hn::Add(hn::Add(bits, hn::Set(u, 0x7FFF)), odd);
    const auto quiet = hn::Or(bits, hn::Set(u, 0x400000));
    const auto chosen = hn::IfThenElse(hn::RebindMask(u, hn::IsNaN(value)), quiet, rounded);
    hn::StoreU(hn::DemoteTo(narrow, hn::BitCast(d, hn::ShiftRight<16>(chosen))), narrow, to + i);
  }
#endif
  RoundOnes(from + i, count - i, to + i);
}

#if HWY_TARGET == HWY_AVX3

// AVX512-BF16; see panels.cc.
HWY_INLINE void RoundByInstruction(const float* HWY_RESTRICT from, std::int64_t count,
                                   std::uint16_t* HWY_RESTRICT to) {
  const hn::CappedTag<float, 16> d;
  const hn::CappedTag<std::uint16_t, 32> wide;
  std::int64_t i = 0;
  for (; i + 32 <= count; i += 32) {
    const auto low = hn::LoadU(d, from + i), high = hn::LoadU(d, from + i + 16);
    auto rounded = hn::Zero(wide);
    asm("vcvtne2ps2bf16 %1, %2, %0" : "=v"(rounded.raw) : "v"(low.raw), "v"(high.raw));
    hn::StoreU(rounded, wide, to + i);
  }
  const hn::CappedTag<std::uint16_t, 16> half;
  for (; i + 16 <= count; i += 16) {
    const auto values = hn::LoadU(d, from + i);
    auto rounded = hn::Zero(half);
    asm("vcvtneps2bf16 %1, %0" : "=v"(rounded.raw) : "v"(values.raw));
    hn::StoreU(rounded, half, to + i);
  }
  RoundOnes(from + i, count - i, to + i);
}

#endif

// `kRound` rounds a run of floats, 16 at a time as far as it can.
template <void (*kRound)(const float*, std::int64_t, std::uint16_t*)>
void RoundRowsBy(const float* from, std::int64_t rows, std::int64_t depth, std::uint16_t* to) {
  if (depth % 2 == 0) return kRound(from, rows * depth, to);
  // A row may be read and written beyond its end where other rows follow, which are written afterwards.
  const std::int64_t rounded = (depth + 15) / 16 * 16;
  for (std::int64_t i = 0; i < rows; ++i, from += depth, to += depth + 1) {
    kRound(from, rounded <= (rows - i) * depth ? rounded : depth, to);
    to[depth] = 0;
  }
}

RoundFloats RoundFloatsOfTarget([[maybe_unused]] bool any_instruction) {
#if HWY_TARGET == HWY_AVX3
  if (any_instruction && __builtin_cpu_supports("avx512bf16") != 0) return &RoundRowsBy<RoundByInstruction>;
#endif
  return &RoundRowsBy<RoundByBits>;
}

}  // namespace rewire::kernel::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rewire::kernel::cpu {

HWY_EXPORT(RoundFloatsOfTarget);

RoundFloats ChooseRoundFloats(bool any_instruction) {
  return HWY_DYNAMIC_DISPATCH(RoundFloatsOfTarget)(any_instruction);
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
