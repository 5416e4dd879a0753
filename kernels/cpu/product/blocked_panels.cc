// SPDX-License-Identifier: Apache-2.0
// Compiled once for each instruction set; see Highway's foreach_target.h.
#include "rewire/kernels/cpu/product/blocked_panels.h"

#include <algorithm>
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

// The codes that the lowest kBits of each word are, as floats. Bits above them are ignored.
template <int kBits>
struct Decoder {
#if HWY_TARGET <= HWY_AVX3
  // Four bits select one of a vector's 16 elements.
  hn::Vec<BlockedF> table;
  HWY_INLINE Decoder() { table = hn::Iota(BlockedF(), 0.0F); }
#endif
  HWY_INLINE hn::Vec<BlockedF> operator()(hn::Vec<BlockedW> words) const {
#if HWY_TARGET <= HWY_AVX3
    if constexpr (kBits == 4) return hn::TableLookupLanes(table, hn::Indices512<float>{words.raw});
#endif
    const auto codes = hn::And(words, hn::Set(BlockedW(), (1U << kBits) - 1));
    return hn::ConvertTo(BlockedF(), hn::BitCast(BlockedI(), codes));
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

// The weights of one block in one vector of columns: code * scale - zero.
struct BlockTerms {
  hn::Vec<BlockedF> scale, zero;

  template <int kBits>
  HWY_INLINE void Load(const BlockedPanel& panel, std::int64_t at) {
    scale = ScalesAt(panel, at);
    zero = hn::Mul(scale, hn::Set(BlockedF(), static_cast<float>(1 << (kBits - 1))));
    if (panel.offsets != nullptr) zero = hn::Add(zero, hn::LoadU(BlockedF(), panel.offsets + at));
  }
  HWY_INLINE hn::Vec<BlockedF> operator()(hn::Vec<BlockedF> codes) const {
    return hn::MulSub(codes, scale, zero);
  }
};

// A multiplier finishes a product about four cycles after it has begun, so the sums of four vectors run side
// by side: of one row, or of two where registers hold no more of both.
#if HWY_TARGET <= HWY_AVX3
constexpr int kRowsAtOnce = 4;
constexpr int kVectorsOfRows = 4;
constexpr std::int64_t kRowsToExpand = 12;
#else
constexpr int kRowsAtOnce = 2;
constexpr int kVectorsOfRows = 2;
constexpr std::int64_t kRowsToExpand = 4;
#endif
static_assert(kRowsAtOnce <= kMostBlockedCount);

// kVectors vectors of columns that lie side by side, of one panel or of several.
template <int kVectors>
struct BlockedColumns {
  const std::uint8_t* codes[kVectors];
  std::int64_t terms[kVectors];  // where their scales begin

  HWY_INLINE BlockedColumns(const BlockedPanel& panel, std::int64_t column) {
    for (int v = 0; v < kVectors; ++v, column += static_cast<std::int64_t>(hn::Lanes(BlockedF()))) {
      const std::int64_t number = column / kBlockedWidth, part = column % kBlockedWidth;
      codes[v] = panel.codes + number * BlockedBytes(panel.depth, panel.bits) + part * kWordBytes;
      terms[v] = number * panel.blocks() * kBlockedWidth + part;
    }
  }
};

// The products of row kRow of the rows of a word.
template <int kBits, int kRow, int kCount, int kVectors>
HWY_INLINE void AddRowOfWord(const Decoder<kBits>& decode, const hn::Vec<BlockedW>* words,
                             const BlockTerms* terms, const float* const* rows, std::int64_t k,
                             hn::Vec<BlockedF> (*sums)[kVectors]) {
  // This is RowInWord, turned around.
  constexpr int kShift = kBits * (kBits == 4 ? 2 * (kRow % 4) + kRow / 4 : kRow);
  hn::Vec<BlockedF> x[kCount];
  for (int i = 0; i < kCount; ++i) x[i] = hn::Set(BlockedF(), rows[i][k + kRow]);
  for (int v = 0; v < kVectors; ++v) {
    const auto weight = terms[v](decode(kShift == 0 ? words[v] : hn::ShiftRight<kShift>(words[v])));
    for (int i = 0; i < kCount; ++i) sums[i][v] = hn::MulAdd(x[i], weight, sums[i][v]);
  }
}

// The products of rows [k, end) of the weights, which are of one block.
template <int kBits, int kCount, int kVectors>
HWY_INLINE void AddWords(const Decoder<kBits>& decode, const BlockTerms* terms, const float* const* rows,
                         std::int64_t k, std::int64_t end, BlockedColumns<kVectors>& columns,
                         hn::Vec<BlockedF> (*sums)[kVectors]) {
  constexpr int kRows = 32 / kBits;  // of a word
  for (; k < end; k += kRows) {
    hn::Vec<BlockedW> words[kVectors];
    for (int v = 0; v < kVectors; ++v) {
      // Once for the vectors of a panel, which share lines.
      if (v * hn::MaxLanes(BlockedF()) % kBlockedWidth == 0) hwy::Prefetch(columns.codes[v] + kBlockedAhead);
      words[v] = WordsAt(columns.codes[v]);
      columns.codes[v] += kWordsBytes;
    }
    AddRowOfWord<kBits, 0, kCount, kVectors>(decode, words, terms, rows, k, sums);
    AddRowOfWord<kBits, 1, kCount, kVectors>(decode, words, terms, rows, k, sums);
    AddRowOfWord<kBits, 2, kCount, kVectors>(decode, words, terms, rows, k, sums);
    AddRowOfWord<kBits, 3, kCount, kVectors>(decode, words, terms, rows, k, sums);
    if constexpr (kBits == 4) {
      AddRowOfWord<kBits, 4, kCount, kVectors>(decode, words, terms, rows, k, sums);
      AddRowOfWord<kBits, 5, kCount, kVectors>(decode, words, terms, rows, k, sums);
      AddRowOfWord<kBits, 6, kCount, kVectors>(decode, words, terms, rows, k, sums);
      AddRowOfWord<kBits, 7, kCount, kVectors>(decode, words, terms, rows, k, sums);
    }
  }
}

// kCount rows by the vectors of columns from `column` on.
template <int kBits, int kCount, int kVectors>
HWY_NOINLINE void MultiplyColumns(const BlockedPanel& panel, const float* const* rows, std::int64_t column,
                                  const BlockedSums& of) {
  const BlockedF d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t width = of.panels * kBlockedWidth;
  const Decoder<kBits> decode;
  BlockedColumns<kVectors> columns(panel, column);
  float* const out = of.out + column;
  const float* addend = of.addend == nullptr ? nullptr : of.addend + column;
  std::int64_t k = 0;
  do {
    hn::Vec<BlockedF> sums[kCount][kVectors];
    for (int v = 0; v < kVectors; ++v) {
      const bool biased = k == 0 && of.bias != nullptr;
      sums[0][v] = biased ? hn::LoadU(d, of.bias + column + v * lanes) : hn::Zero(d);
      for (int i = 1; i < kCount; ++i) sums[i][v] = sums[0][v];
    }
    for (const std::int64_t end = std::min(k + kBlockedSegment, panel.depth); k < end;) {
      const std::int64_t block = k / panel.block;
      const std::int64_t last = std::min(end, (block + 1) * panel.block);
      BlockTerms terms[kVectors];
      for (int v = 0; v < kVectors; ++v)
        terms[v].template Load<kBits>(panel, columns.terms[v] + block * kBlockedWidth);
      AddWords<kBits, kCount, kVectors>(decode, terms, rows, k, last, columns, sums);
      k = last;
    }
    for (int i = 0; i < kCount; ++i) {
      for (int v = 0; v < kVectors; ++v) {
        const std::int64_t at = i * width + v * lanes;
        const auto sum = addend == nullptr ? sums[i][v] : hn::Add(sums[i][v], hn::LoadU(d, addend + at));
        hn::StoreU(sum, d, out + at);
      }
    }
    addend = out;
  } while (k < panel.depth);
}

// kCount rows by all columns.
template <int kBits, int kCount>
HWY_INLINE void MultiplyPanels(const BlockedPanel& panel, const float* const* rows, const BlockedSums& sums) {
  constexpr int kMost = kCount == 1 ? 4 : kVectorsOfRows;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(BlockedF()));
  const std::int64_t width = sums.panels * kBlockedWidth;
  std::int64_t column = 0;
  for (; column + kMost * lanes <= width; column += kMost * lanes)
    MultiplyColumns<kBits, kCount, kMost>(panel, rows, column, sums);
  if constexpr (kMost > 2) {
    for (; column + 2 * lanes <= width; column += 2 * lanes)
      MultiplyColumns<kBits, kCount, 2>(panel, rows, column, sums);
  }
  // A panel of one vector.
  if constexpr (hn::MaxLanes(BlockedF()) == kBlockedWidth) {
    for (; column < width; column += lanes) MultiplyColumns<kBits, kCount, 1>(panel, rows, column, sums);
  }
}

template <int kBits>
HWY_INLINE void MultiplyRows(const BlockedPanel& panel, const float* const* rows, int count,
                             BlockedSums sums) {
  const std::int64_t width = sums.panels * kBlockedWidth;
  for (; count >= kRowsAtOnce; count -= kRowsAtOnce, rows += kRowsAtOnce) {
    MultiplyPanels<kBits, kRowsAtOnce>(panel, rows, sums);
    sums.out += kRowsAtOnce * width;
    if (sums.addend != nullptr) sums.addend += kRowsAtOnce * width;
  }
  if constexpr (kRowsAtOnce > 2) {
    if (count == 3) MultiplyPanels<kBits, 3>(panel, rows, sums);
    if (count == 2) MultiplyPanels<kBits, 2>(panel, rows, sums);
  }
  if (count == 1) MultiplyPanels<kBits, 1>(panel, rows, sums);
}

void MultiplyBlocked(const BlockedPanel& panel, const float* const* rows, int count,
                     const BlockedSums& sums) {
  if (panel.bits == 4)
    MultiplyRows<4>(panel, rows, count, sums);
  else
    MultiplyRows<8>(panel, rows, count, sums);
}

template <int kBits>
HWY_INLINE void ExpandPart(const BlockedPanel& panel, std::int64_t first, std::int64_t count,
                           std::int64_t part, float* to, std::int64_t step) {
  constexpr int kRows = 32 / kBits;
  const BlockedF d;
  const Decoder<kBits> decode;
  const std::uint8_t* codes = panel.codes + first / kRows * kWordsBytes + part * kWordBytes;
  for (std::int64_t k = first; k < first + count;) {
    const std::int64_t block = k / panel.block;
    const std::int64_t last = std::min(first + count, (block + 1) * panel.block);
    BlockTerms terms;
    terms.Load<kBits>(panel, block * kBlockedWidth + part);
    for (; k < last; k += kRows, to += kRows * step, codes += kWordsBytes) {
      auto words = WordsAt(codes);
      for (int n = 0; n < kRows; ++n) {
        hn::StoreU(terms(decode(words)), d, to + RowInWord(n, kBits) * step);
        words = hn::ShiftRight<kBits>(words);
      }
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
