// SPDX-License-Identifier: Apache-2.0
// Compiled once for each instruction set; see Highway's foreach_target.h.
#include "rewire/kernels/cpu/product/pack_bytes.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "rewire/kernels/cpu/product/pack_bytes.cc"
#include <hwy/foreach_target.h>
// Behind it.
#include "rewire/kernels/cpu/elementwise/activated-inl.h"
#include "rewire/kernels/cpu/product/vnni-inl.h"
#include "rewire/kernels/cpu/support/convert.h"

HWY_BEFORE_NAMESPACE();
namespace rewire::kernel::cpu::HWY_NAMESPACE {

using SplitFloats = hn::CappedTag<float, kHalfPanel>;
using SplitInts = hn::Rebind<std::int32_t, SplitFloats>;
using SplitVector = hn::Vec<SplitFloats>;

inline std::int64_t SplitLanes() { return static_cast<std::int64_t>(hn::Lanes(SplitFloats())); }

// The most that signed bytes hold on both sides of 0: 127 * 256 + 127, or (127 * 256 + 127) * 256. A product
// may be rounded to one more than the latter.
constexpr float MostOfSplit(int limbs) { return limbs == 2 ? 32639 : 8355584; }

// The largest magnitude; NaN if something is not finite.
inline float LargestOf(const float* HWY_RESTRICT x, std::int64_t count) {
  const SplitFloats d;
  SplitVector most = hn::Zero(d), not_finite = hn::Zero(d);
  std::int64_t k = 0;
  for (; k + SplitLanes() <= count; k += SplitLanes()) {
    const SplitVector value = hn::LoadU(d, x + k);
    most = hn::Max(most, hn::Abs(value));
    not_finite = hn::MulAdd(value, hn::Zero(d), not_finite);
  }
  float largest = hn::GetLane(hn::MaxOfLanes(d, most)), rest = hn::GetLane(hn::SumOfLanes(d, not_finite));
  for (; k < count; ++k) {
    largest = std::max(largest, std::fabs(x[k]));
    rest += x[k] * 0.0F;
  }
  return largest + rest;
}

// Takes the lowest byte of a number; `rest` is what is left above.
template <class V>
HWY_INLINE V TakeByte(V& rest) {
  const V byte = hn::ShiftRight<24>(hn::ShiftLeft<24>(rest));
  rest = hn::ShiftRight<8>(hn::Sub(rest, byte));
  return byte;
}

template <int kLimbs>
bool SplitGroup(const float* HWY_RESTRICT x, std::int64_t count, std::int8_t* HWY_RESTRICT to,
                std::int64_t step, float* scale, std::int32_t* starts) {
  constexpr float kLeastWithInverse = 1e-30F;
  const float largest = LargestOf(x, count);
  if (!(largest == 0 || largest >= kLeastWithInverse)) return false;
  const float inverse = largest == 0 ? 0 : MostOfSplit(kLimbs) / largest;
  const SplitFloats d;
  const SplitInts whole;
  const hn::Rebind<std::int8_t, SplitFloats> bytes;
  auto first = hn::Zero(whole), second = hn::Zero(whole), third = hn::Zero(whole);
  std::int64_t k = 0;
  for (; k + SplitLanes() <= count; k += SplitLanes()) {
    auto rest = hn::NearestInt(hn::Mul(hn::LoadU(d, x + k), hn::Set(d, inverse)));
    if constexpr (kLimbs == 3) {
      const auto byte = TakeByte(rest);
      third = hn::Add(third, byte);
      hn::StoreU(hn::DemoteTo(bytes, byte), bytes, to + 2 * step + k);
    }
    const auto byte = TakeByte(rest);
    second = hn::Add(second, byte);
    first = hn::Add(first, rest);
    hn::StoreU(hn::DemoteTo(bytes, byte), bytes, to + step + k);
    hn::StoreU(hn::DemoteTo(bytes, rest), bytes, to + k);
  }
  std::int32_t sums[kMostLimbs] = {hn::GetLane(hn::SumOfLanes(whole, first)),
                                   hn::GetLane(hn::SumOfLanes(whole, second)),
                                   hn::GetLane(hn::SumOfLanes(whole, third))};
  for (; k < count; ++k) {
    auto rest = ToType<std::int32_t>(std::nearbyint(x[k] * inverse));
    for (int limb = kLimbs - 1; limb >= 0; --limb) {
      const auto byte = static_cast<std::int8_t>(rest & 255);
      to[limb * step + k] = byte;
      sums[limb] += byte;
      rest = (rest - byte) / 256;
    }
  }
  *scale = largest / MostOfSplit(kLimbs);
  for (int limb = 0; limb < kLimbs; ++limb) starts[limb] = -128 * sums[limb];
  return true;
}

bool SplitRow(const float* x, std::int64_t depth, int limbs, std::int64_t limb_bytes, std::int8_t* bytes,
              float* scales, std::int32_t* starts) {
  for (int limb = 0; limb < limbs; ++limb)
    std::fill(bytes + limb * limb_bytes + depth, bytes + (limb + 1) * limb_bytes, std::int8_t{0});
  const auto split = limbs == 2 ? &SplitGroup<2> : &SplitGroup<3>;
  for (std::int64_t k = 0; k < depth; k += kSplitGroup, starts += limbs) {
    if (!split(x + k, std::min(kSplitGroup, depth - k), bytes + k, limb_bytes, scales++, starts))
      return false;
  }
  return true;
}

// A quad of weights for each column of a vector.
HWY_INLINE hn::Vec<SplitInts> LoadQuads(const std::int8_t* from) {
#if HWY_TARGET == HWY_SCALAR
  std::int32_t quad = 0;
  std::memcpy(&quad, from, sizeof(quad));
  return hn::Set(SplitInts(), quad);
#else
  return hn::BitCast(SplitInts(), hn::LoadU(hn::Repartition<std::int8_t, SplitInts>(), from));
#endif
}

void ExpandWeights(const std::int8_t* HWY_RESTRICT panel, std::int64_t width, std::int64_t first,
                   std::int64_t count, const float* HWY_RESTRICT scale, float* HWY_RESTRICT to) {
  const SplitFloats d;
  for (std::int64_t k = first; k < first + count; k += kQuad, to += kQuad * width) {
    for (std::int64_t j = 0; j < width; j += SplitLanes()) {
      const auto quad = LoadQuads(panel + (k / kQuad * width + j) * kQuad);
      const SplitVector factor = hn::LoadU(d, scale + j);
      const auto store = [&](auto shifted, std::int64_t row) {
        hn::StoreU(hn::Mul(hn::ConvertTo(d, hn::ShiftRight<24>(shifted)), factor), d, to + row * width + j);
      };
      store(hn::ShiftLeft<24>(quad), 0);
      store(hn::ShiftLeft<16>(quad), 1);
      store(hn::ShiftLeft<8>(quad), 2);
      store(quad, 3);
    }
  }
}

#if HWY_TARGET == HWY_AVX3

// The sums of one row's bytes by two vectors of columns, for each place in its numbers: structs in structs,
// as in panels.cc. The weights are the unsigned side of VNNI's products, 128 higher than they are.
template <int kLimbs>
struct SplitLimbs {
  hn::Vec<SplitInts> left, right;
  SplitLimbs<kLimbs - 1> next;

  HWY_INLINE void Begin(const std::int32_t* starts) {
    left = right = hn::Set(SplitInts(), *starts);
    next.Begin(starts + 1);
  }
  HWY_INLINE void Add(const std::int8_t* from, std::int64_t step, hn::Vec<SplitInts> first,
                      hn::Vec<SplitInts> second) {
    std::int32_t bytes = 0;
    std::memcpy(&bytes, from, sizeof(bytes));
    const auto quad = hn::Set(SplitInts(), bytes);
    AddVnni(left, first, quad);
    AddVnni(right, second, quad);
    next.Add(from + step, step, first, second);
  }
  // The sums of the numbers, if those of the higher bytes are these.
  HWY_INLINE void Join(SplitVector& of_left, SplitVector& of_right) const {
    const SplitFloats d;
    of_left = hn::MulAdd(of_left, hn::Set(d, 256.0F), hn::ConvertTo(d, left));
    of_right = hn::MulAdd(of_right, hn::Set(d, 256.0F), hn::ConvertTo(d, right));
    next.Join(of_left, of_right);
  }
};

template <>
struct SplitLimbs<0> {
  HWY_INLINE void Begin(const std::int32_t*) {}
  HWY_INLINE void Add(const std::int8_t*, std::int64_t, hn::Vec<SplitInts>, hn::Vec<SplitInts>) {}
  HWY_INLINE void Join(SplitVector&, SplitVector&) const {}
};

// The same of kRows rows, and their totals over the groups.
template <int kRows, int kLimbs>
struct SplitSums {
  SplitLimbs<kLimbs> limbs;
  SplitVector left, right;
  SplitSums<kRows - 1, kLimbs> next;

  HWY_INLINE void Clear() {
    left = right = hn::Zero(SplitFloats());
    next.Clear();
  }
  HWY_INLINE void Begin(const std::int32_t* starts, std::int64_t groups) {
    limbs.Begin(starts);
    next.Begin(starts + kLimbs * groups, groups);
  }
  HWY_INLINE void Add(const std::int8_t* const* rows, std::int64_t k, std::int64_t step,
                      hn::Vec<SplitInts> first, hn::Vec<SplitInts> second) {
    limbs.Add(*rows + k, step, first, second);
    next.Add(rows + 1, k, step, first, second);
  }
  HWY_INLINE void End(const float* scales, std::int64_t groups) {
    const SplitVector scale = hn::Set(SplitFloats(), *scales);
    SplitVector of_left = hn::Zero(SplitFloats()), of_right = of_left;
    limbs.Join(of_left, of_right);
    left = hn::MulAdd(of_left, scale, left);
    right = hn::MulAdd(of_right, scale, right);
    next.End(scales + groups, groups);
  }
  HWY_INLINE void Store(float* to) const {
    hn::Store(left, SplitFloats(), to);
    hn::Store(right, SplitFloats(), to + kHalfPanel);
    next.Store(to + kPanelWidth);
  }
};

template <int kLimbs>
struct SplitSums<0, kLimbs> {
  HWY_INLINE void Clear() {}
  HWY_INLINE void Begin(const std::int32_t*, std::int64_t) {}
  HWY_INLINE void Add(const std::int8_t* const*, std::int64_t, std::int64_t, hn::Vec<SplitInts>,
                      hn::Vec<SplitInts>) {}
  HWY_INLINE void End(const float*, std::int64_t) {}
  HWY_INLINE void Store(float*) const {}
};

// The sums of a tile, [kRows, kPanelWidth]. A half panel is multiplied twice, which is rare.
template <int kRows, int kLimbs>
HWY_NOINLINE void SumTile(const SplitTile& tile, float* sums) {
  const SplitRows& rows = tile.rows;
  const std::int64_t padded = PaddedDepth(rows.depth), groups = SplitGroups(rows.depth);
  const std::int64_t step = rows.limb_bytes;
  const std::int64_t right = (tile.width - kHalfPanel) * kQuad;
  const std::int8_t* pointers[kRows];
  for (int i = 0; i < kRows; ++i) pointers[i] = rows.bytes + i * kLimbs * step;
  const auto raised = hn::Set(SplitInts(), static_cast<std::int32_t>(0x80808080U));
  const std::int8_t* panel = tile.panel;
  SplitSums<kRows, kLimbs> of;
  of.Clear();
  for (std::int64_t g = 0; g < groups; ++g) {
    of.Begin(rows.starts + kLimbs * g, groups);
    const std::int64_t end = std::min(padded, (g + 1) * kSplitGroup);
    for (std::int64_t k = g * kSplitGroup; k < end; k += kQuad, panel += tile.width * kQuad) {
      of.Add(pointers, k, step, hn::Xor(LoadQuads(panel), raised), hn::Xor(LoadQuads(panel + right), raised));
    }
    of.End(rows.scales + g, groups);
  }
  of.Store(sums);
}

HWY_INLINE void FinishColumns(const SplitTile& tile, const float* sums, std::int64_t row, std::int64_t at) {
  const SplitFloats d;
  const std::int64_t place = row * tile.step + at, left = tile.columns - at;
  if (left >= kHalfPanel) {
    SplitVector value = hn::Mul(hn::LoadU(d, sums + at), hn::LoadU(d, tile.scale + at));
    if (tile.bias != nullptr) value = hn::Add(value, hn::LoadU(d, tile.bias + at));
    if (tile.addend != nullptr) value = hn::Add(value, hn::LoadU(d, tile.addend + place));
    if (!tile.activation.IsNone()) value = Activated(d, value, tile.activation);
    return hn::StoreU(value, d, tile.out + place);
  }
  HWY_ALIGN float result[kHalfPanel] = {};
  for (std::int64_t j = 0; j < left; ++j) {
    result[j] = sums[at + j] * tile.scale[at + j];
    if (tile.bias != nullptr) result[j] += tile.bias[at + j];
    if (tile.addend != nullptr) result[j] += tile.addend[place + j];
  }
  hn::Store(Activated(d, hn::Load(d, result), tile.activation), d, result);
  std::copy_n(result, left, tile.out + place);
}

void FinishTotals(const SplitTile& tile, const float* totals) {
  for (int i = 0; i < tile.count; ++i) {
    if (std::isnan(tile.rows.scales[i * SplitGroups(tile.rows.depth)])) continue;
    for (std::int64_t j = 0; j < tile.columns; j += kHalfPanel)
      FinishColumns(tile, totals + i * kPanelWidth, i, j);
  }
}

template <int kRows, int kLimbs>
void MultiplyRowsOf(const SplitTile& tile) {
  if constexpr (kRows > 1) {
    if (tile.count < kRows) return MultiplyRowsOf<kRows - 1, kLimbs>(tile);
  }
  HWY_ALIGN float sums[kRows * kPanelWidth];
  SumTile<kRows, kLimbs>(tile, sums);
  FinishTotals(tile, sums);
}

void JoinSums(const SplitTile& tile, std::int64_t g, const std::int32_t* sums, float* totals) {
  const SplitFloats d;
  const std::int64_t groups = SplitGroups(tile.rows.depth);
  for (int i = 0; i < tile.count; ++i, totals += kPanelWidth) {
    const SplitVector scale = hn::Set(d, tile.rows.scales[i * groups + g]);
    for (std::int64_t j = 0; j < tile.width; j += kHalfPanel) {
      SplitVector sum = hn::Zero(d);
      for (int limb = 0; limb < tile.rows.limbs; ++limb) {
        const std::int32_t* of = sums + (i * tile.rows.limbs + limb) * kPanelWidth + j;
        sum = hn::MulAdd(sum, hn::Set(d, 256.0F), hn::ConvertTo(d, hn::Load(SplitInts(), of)));
      }
      const SplitVector before = g == 0 ? hn::Zero(d) : hn::Load(d, totals + j);
      hn::Store(hn::MulAdd(sum, scale, before), d, totals + j);
    }
  }
}

void MultiplySplit(const SplitTile& tile) {
  return tile.rows.limbs == 2 ? MultiplyRowsOf<SplitRowsAtOnce(2), 2>(tile)
                              : MultiplyRowsOf<SplitRowsAtOnce(3), 3>(tile);
}

#endif

ByteRowKernels ByteRowsOfTarget() {
  ByteRowKernels kernels{&SplitRow, nullptr, nullptr, nullptr, &ExpandWeights};
#if HWY_TARGET == HWY_AVX3
  kernels.join = &JoinSums;
  kernels.finish = &FinishTotals;
  if (HasVnni()) kernels.multiply = &MultiplySplit;
#endif
  return kernels;
}

}  // namespace rewire::kernel::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rewire::kernel::cpu {

HWY_EXPORT(ByteRowsOfTarget);

ByteRowKernels ChooseByteRowKernels() { return HWY_DYNAMIC_DISPATCH(ByteRowsOfTarget)(); }

const ByteRowKernels& BestByteRowKernels() {
  static const ByteRowKernels kBest = ChooseByteRowKernels();
  return kBest;
}

}  // namespace rewire::kernel::cpu
#endif
