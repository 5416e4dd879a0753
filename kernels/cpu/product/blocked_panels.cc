// SPDX-License-Identifier: Apache-2.0
// Compiled once for each instruction set; see Highway's foreach_target.h.
#include "rewire/kernels/cpu/product/blocked_panels.h"

#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "rewire/kernels/cpu/product/blocked_panels.cc"
#include <hwy/foreach_target.h>
// Behind it.
#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include "rewire/kernels/cpu/product/vnni-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rewire::kernel::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using BlockedF = hn::CappedTag<float, kBlockedWidth>;
using BlockedW = hn::Rebind<std::uint32_t, BlockedF>;
using BlockedHalf = hn::Rebind<hwy::float16_t, BlockedF>;
using BlockedI = hn::Rebind<std::int32_t, BlockedF>;

// How far ahead codes are fetched: further than the CPU itself does, which stops at the end of a page.
constexpr std::int64_t kBlockedAhead = 2048;
constexpr std::int64_t kWordBytes = 4;
constexpr std::int64_t kWordsBytes = kWordBytes * kBlockedWidth;  // of one word of each column

// The weights less their zero that the lowest kBits of each word stand for. Bits above them are ignored.
template <int kBits>
struct Decoder {
#if HWY_TARGET <= HWY_AVX3
  // Four bits select one of a vector's 16 elements.
  hn::Vec<BlockedF> table;
  HWY_INLINE Decoder() {
    HWY_ALIGN static constexpr float kTable[16] = {-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7};
    table = hn::Load(BlockedF(), kTable);
  }
#endif
  HWY_INLINE hn::Vec<BlockedF> operator()(hn::Vec<BlockedW> words) const {
#if HWY_TARGET <= HWY_AVX3
    if constexpr (kBits == 4) return hn::TableLookupLanes(table, hn::Indices512<float>{words.raw});
#endif
    const BlockedW d;
    const auto codes = hn::And(words, hn::Set(d, (1U << kBits) - 1));
    return hn::Sub(hn::ConvertTo(BlockedF(), hn::BitCast(BlockedI(), codes)),
                   hn::Set(BlockedF(), static_cast<float>(1 << (kBits - 1))));
  }
};

// The codes may lie at any byte.
HWY_INLINE hn::Vec<BlockedW> WordsAt(const std::uint8_t* codes) {
#if HWY_TARGET == HWY_SCALAR
  std::uint32_t word = 0;
  std::memcpy(&word, codes, sizeof(word));
  return hn::Set(BlockedW(), word);
#else
  return hn::BitCast(BlockedW(), hn::LoadU(hn::Repartition<std::uint8_t, BlockedW>(), codes));
#endif
}

HWY_INLINE hn::Vec<BlockedF> ScalesAt(const BlockedPanel& panel, std::int64_t at) {
  if (!panel.half_scales) return hn::LoadU(BlockedF(), static_cast<const float*>(panel.scales) + at);
  const auto* from = static_cast<const hwy::float16_t*>(panel.scales) + at;
  return hn::PromoteTo(BlockedF(), hn::LoadU(BlockedHalf(), from));
}

// The rows whose sums the CPU's registers hold beside each other, four of each.
#if HWY_TARGET <= HWY_AVX3
constexpr int kRowsAtOnce = 4;
constexpr std::int64_t kRowsToExpand = 12;
#else
constexpr int kRowsAtOnce = 2;
constexpr std::int64_t kRowsToExpand = 4;
#endif
static_assert(kRowsAtOnce <= kMostBlockedCount);

template <int kBits, int kShift, int kCount>
HWY_INLINE void AddCode(const Decoder<kBits>& decode, hn::Vec<BlockedW> words, const BlockedRow* rows,
                        std::int64_t k, hn::Vec<BlockedF> (*sums)[4]) {
  const auto weight = decode(kShift == 0 ? words : hn::ShiftRight<kShift * kBits>(words));
  for (int i = 0; i < kCount; ++i) {
    auto& sum = sums[i][kShift % 4];
    sum = hn::MulAdd(weight, hn::Set(BlockedF(), rows[i].x[k + RowInWord(kShift, kBits)]), sum);
  }
}

// Columns [part, part + lanes) of a panel.
template <int kBits, int kCount>
HWY_INLINE void MultiplyPart(const BlockedPanel& panel, const BlockedRow* HWY_RESTRICT all, std::int64_t part,
                             float* HWY_RESTRICT out) {
  constexpr int kRows = 32 / kBits;  // of a word
  const BlockedF d;
  const Decoder<kBits> decode;
  BlockedRow rows[kCount];
  hn::Vec<BlockedF> totals[kCount];
  for (int i = 0; i < kCount; ++i) {
    rows[i] = all[i];
    totals[i] = hn::Zero(d);
  }
  const std::uint8_t* codes = panel.codes + part * kWordBytes;
  const std::int64_t blocks = panel.depth / panel.block;
  std::int64_t k = 0;
  for (std::int64_t b = 0; b < blocks; ++b) {
    // A multiplier finishes a product about four cycles after it has begun, so four sums run side by side.
    hn::Vec<BlockedF> sums[kCount][4];
    for (int i = 0; i < kCount; ++i) sums[i][0] = sums[i][1] = sums[i][2] = sums[i][3] = hn::Zero(d);
    for (const std::int64_t end = k + panel.block; k < end; k += kRows, codes += kWordsBytes) {
      hwy::Prefetch(codes + kBlockedAhead);
      const auto words = WordsAt(codes);
      AddCode<kBits, 0, kCount>(decode, words, rows, k, sums);
      AddCode<kBits, 1, kCount>(decode, words, rows, k, sums);
      AddCode<kBits, 2, kCount>(decode, words, rows, k, sums);
      AddCode<kBits, 3, kCount>(decode, words, rows, k, sums);
      if constexpr (kBits == 4) {
        AddCode<kBits, 4, kCount>(decode, words, rows, k, sums);
        AddCode<kBits, 5, kCount>(decode, words, rows, k, sums);
        AddCode<kBits, 6, kCount>(decode, words, rows, k, sums);
        AddCode<kBits, 7, kCount>(decode, words, rows, k, sums);
      }
    }
    const std::int64_t at = b * kBlockedWidth + part;
    const auto scale = ScalesAt(panel, at);
    for (int i = 0; i < kCount; ++i) {
      const auto& sum = sums[i];
      totals[i] = hn::MulAdd(hn::Add(hn::Add(sum[0], sum[1]), hn::Add(sum[2], sum[3])), scale, totals[i]);
      if (panel.offsets != nullptr) {
        const auto of_row = hn::Set(d, rows[i].block_sums[b]);
        totals[i] = hn::NegMulAdd(hn::LoadU(d, panel.offsets + at), of_row, totals[i]);
      }
    }
  }
  for (int i = 0; i < kCount; ++i) hn::StoreU(totals[i], d, out + i * kBlockedWidth + part);
}

template <int kBits>
HWY_INLINE void MultiplyRows(const BlockedPanel& panel, const BlockedRow* rows, int count, std::int64_t part,
                             float* out) {
  for (; count >= kRowsAtOnce; count -= kRowsAtOnce, rows += kRowsAtOnce, out += kRowsAtOnce * kBlockedWidth)
    MultiplyPart<kBits, kRowsAtOnce>(panel, rows, part, out);
  if constexpr (kRowsAtOnce > 2) {
    if (count == 3) MultiplyPart<kBits, 3>(panel, rows, part, out);
    if (count == 2) MultiplyPart<kBits, 2>(panel, rows, part, out);
  }
  if (count == 1) MultiplyPart<kBits, 1>(panel, rows, part, out);
}

void MultiplyBlocked(const BlockedPanel& panel, const BlockedRow* rows, int count, float* out) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(BlockedF()));
  for (std::int64_t part = 0; part < kBlockedWidth; part += lanes) {
    if (panel.bits == 4)
      MultiplyRows<4>(panel, rows, count, part, out);
    else
      MultiplyRows<8>(panel, rows, count, part, out);
  }
}

template <int kBits>
HWY_INLINE void ExpandPart(const BlockedPanel& panel, std::int64_t first, std::int64_t count,
                           std::int64_t part, float* to, std::int64_t step) {
  constexpr int kRows = 32 / kBits;
  const BlockedF d;
  const Decoder<kBits> decode;
  const std::uint8_t* codes = panel.codes + first / kRows * kWordsBytes + part * kWordBytes;
  for (std::int64_t k = first; k < first + count; k += kRows, to += kRows * step, codes += kWordsBytes) {
    const std::int64_t at = k / panel.block * kBlockedWidth + part;
    const auto scale = ScalesAt(panel, at);
    const auto offset = panel.offsets != nullptr ? hn::LoadU(d, panel.offsets + at) : hn::Zero(d);
    auto words = WordsAt(codes);
    for (int n = 0; n < kRows; ++n) {
      hn::StoreU(hn::MulSub(decode(words), scale, offset), d, to + RowInWord(n, kBits) * step);
      words = hn::ShiftRight<kBits>(words);
    }
  }
}

void ExpandBlocked(const BlockedPanel& panel, std::int64_t first, std::int64_t count, float* to,
                   std::int64_t step) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(BlockedF()));
  for (std::int64_t part = 0; part < kBlockedWidth; part += lanes) {
    if (panel.bits == 4)
      ExpandPart<4>(panel, first, count, part, to + part, step);
    else
      ExpandPart<8>(panel, first, count, part, to + part, step);
  }
}

// The row's elements in 8 bits: rounded to 127ths of the largest one of the block.
void QuantizeBlocks(const float* x, std::int64_t depth, std::int64_t block, std::int8_t* bytes, float* scales,
                    std::int32_t* sums) {
  const hn::CappedTag<float, kBlockedRows> d;
  const hn::Rebind<std::int32_t, decltype(d)> ints;
  const hn::Rebind<std::int8_t, decltype(d)> to;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t b = 0; b < depth / block; ++b, x += block, bytes += block) {
    auto most = hn::Zero(d), rest = most;
    for (std::int64_t k = 0; k < block; k += lanes) {
      const auto value = hn::LoadU(d, x + k);
      most = hn::Max(most, hn::Abs(value));
      rest = hn::MulAdd(value, hn::Zero(d), rest);  // NaN if an element is not finite
    }
    const float largest = hn::GetLane(hn::MaxOfLanes(d, most));
    scales[b] = largest / 127 + hn::GetLane(hn::SumOfLanes(d, rest));
    const auto factor = hn::Set(d, largest != 0 ? 127 / largest : 0);
    auto sum = hn::Zero(ints);
    for (std::int64_t k = 0; k < block; k += lanes) {
      const auto rounded = hn::NearestInt(hn::Mul(hn::LoadU(d, x + k), factor));
      const auto narrow = hn::DemoteTo(to, rounded);
      hn::StoreU(narrow, to, bytes + k);
      sum = hn::Add(sum, hn::PromoteTo(ints, narrow));
    }
    sums[b] = hn::GetLane(hn::SumOfLanes(ints, sum));
  }
}

#if HWY_TARGET == HWY_AVX3

HWY_INLINE void AddBytes(hn::Vec<BlockedI>& sum, hn::Vec<BlockedW> codes, std::uint32_t quad) {
  AddVnni(sum, codes, hn::Set(BlockedW(), quad));
}

HWY_INLINE std::uint32_t QuadAt(const std::int8_t* bytes) {
  std::uint32_t quad = 0;
  std::memcpy(&quad, bytes, sizeof(quad));
  return quad;
}

template <int kBits, int kCount>
HWY_INLINE void MultiplyByteRows(const BlockedPanel& panel, const BlockedBytesRow* rows, float* out) {
  constexpr std::int32_t kZero = 1 << (kBits - 1);
  constexpr std::int64_t kStep = 8;  // rows at once
  const BlockedF d;
  const BlockedI ints;
  const auto low_half = hn::Set(BlockedW(), 0x0F0F0F0FU);
  hn::Vec<BlockedF> totals[kCount];
  const std::int8_t* bytes[kCount];
  for (int i = 0; i < kCount; ++i) {
    totals[i] = hn::Zero(d);
    bytes[i] = rows[i].bytes;
  }
  const std::uint8_t* codes = panel.codes;
  const std::int64_t blocks = panel.depth / panel.block;
  for (std::int64_t b = 0; b < blocks; ++b) {
    // Two sums for each row, since one would wait for each instruction.
    hn::Vec<BlockedI> low[kCount], high[kCount];
    for (int i = 0; i < kCount; ++i) {
      low[i] = hn::Set(ints, -kZero * rows[i].sums[b]);
      high[i] = hn::Zero(ints);
    }
    for (std::int64_t k = 0; k < panel.block; k += kStep, codes += BlockedBytes(kStep, kBits)) {
      hwy::Prefetch(codes + kBlockedAhead);
      const auto words = WordsAt(codes);
      const auto first = kBits == 4 ? hn::And(words, low_half) : words;
      const auto second =
          kBits == 4 ? hn::And(hn::ShiftRight<4>(words), low_half) : WordsAt(codes + kWordsBytes);
      for (int i = 0; i < kCount; ++i) {
        AddBytes(low[i], first, QuadAt(bytes[i] + k));
        AddBytes(high[i], second, QuadAt(bytes[i] + k + 4));
      }
    }
    const std::int64_t at = b * kBlockedWidth;
    const auto scale = ScalesAt(panel, at);
    for (int i = 0; i < kCount; ++i) {
      bytes[i] += panel.block;
      const auto of_row = hn::Set(d, rows[i].scales[b]);
      const auto sum = hn::ConvertTo(d, hn::Add(low[i], high[i]));
      totals[i] = hn::MulAdd(sum, hn::Mul(scale, of_row), totals[i]);
      if (panel.offsets != nullptr) {
        const auto row_sum = hn::Mul(of_row, hn::Set(d, static_cast<float>(rows[i].sums[b])));
        totals[i] = hn::NegMulAdd(hn::LoadU(d, panel.offsets + at), row_sum, totals[i]);
      }
    }
  }
  for (int i = 0; i < kCount; ++i) hn::StoreU(totals[i], d, out + i * kBlockedWidth);
}

template <int kBits>
HWY_INLINE void MultiplyBytesOf(const BlockedPanel& panel, const BlockedBytesRow* rows, int count,
                                float* out) {
  switch (count) {
    case 1:
      return MultiplyByteRows<kBits, 1>(panel, rows, out);
    case 2:
      return MultiplyByteRows<kBits, 2>(panel, rows, out);
    case 3:
      return MultiplyByteRows<kBits, 3>(panel, rows, out);
    default:
      return MultiplyByteRows<kBits, kMostBlockedCount>(panel, rows, out);
  }
}

void MultiplyBlockedBytes(const BlockedPanel& panel, const BlockedBytesRow* rows, int count, float* out) {
  if (panel.bits == 4)
    MultiplyBytesOf<4>(panel, rows, count, out);
  else
    MultiplyBytesOf<8>(panel, rows, count, out);
}

BlockedKernels BlockedOfTarget() {
  const bool vnni = HasVnni();
  return {&MultiplyBlocked, vnni ? &MultiplyBlockedBytes : nullptr, &ExpandBlocked, &QuantizeBlocks,
          kRowsToExpand};
}

#else

BlockedKernels BlockedOfTarget() {
  return {&MultiplyBlocked, nullptr, &ExpandBlocked, &QuantizeBlocks, kRowsToExpand};
}

#endif

}  // namespace rewire::kernel::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rewire::kernel::cpu {

HWY_EXPORT(BlockedOfTarget);

BlockedKernels ChooseBlockedKernels() { return HWY_DYNAMIC_DISPATCH(BlockedOfTarget)(); }

const BlockedKernels& BestBlockedKernels() {
  static const BlockedKernels kBest = ChooseBlockedKernels();
  return kBest;
}

}  // namespace rewire::kernel::cpu
#endif
