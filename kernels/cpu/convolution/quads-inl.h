// SPDX-License-Identifier: Apache-2.0
// Bytes in quads, and the products of quads; included as vector_functions-inl.h is.
#if defined(REWIRE_KERNELS_CPU_QUADS_) == defined(HWY_TARGET_TOGGLE)
#ifdef REWIRE_KERNELS_CPU_QUADS_
#undef REWIRE_KERNELS_CPU_QUADS_
#else
#define REWIRE_KERNELS_CPU_QUADS_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>

#include "rewire/kernels/cpu/product/integer_panels.h"
#include "rewire/kernels/cpu/product/vnni-inl.h"

#if HWY_TARGET != HWY_SCALAR  // which has no vectors to order

HWY_BEFORE_NAMESPACE();
namespace rewire::kernel::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// As many sums of 32 bits as a vector of bytes has quads.
template <class DB>
using Sums32 = hn::Repartition<std::int32_t, DB>;

// The bytes from `from` on, but for those behind `end`.
template <class DB>
HWY_INLINE hn::Vec<DB> LoadBefore(DB d, const std::uint8_t* end, const std::uint8_t* from) {
  if (end - from >= static_cast<std::int64_t>(hn::Lanes(d))) return hn::LoadU(d, from);
  HWY_ALIGN std::uint8_t edge[hn::MaxLanes(DB())] = {};
  std::copy(from, end, edge);
  return hn::Load(d, edge);
}

// Puts the bytes of four vectors side by side: `to` gets a quad for each byte of a vector.
template <class DB>
HWY_INLINE void StoreQuads(DB d, hn::Vec<DB> (&members)[kQuad], std::uint8_t* to) {
  const hn::RepartitionToWide<DB> wide;
  const hn::Repartition<std::uint32_t, DB> quads;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  if constexpr (hn::MaxLanes(DB()) > 16) {
    // Vectors are interleaved within each 16 bytes. So these get bytes that lie a quarter of a vector apart.
    constexpr std::int32_t kBlocks = hn::MaxLanes(DB()) / 16;
    HWY_ALIGN std::int32_t from[4 * kBlocks];
    for (std::int32_t i = 0; i < 4 * kBlocks; ++i) from[i] = i % 4 * kBlocks + i / 4;
    const auto order = hn::SetTableIndices(quads, from);
    for (auto& member : members)
      member = hn::BitCast(d, hn::TableLookupLanes(hn::BitCast(quads, member), order));
  }
  const auto low = hn::BitCast(wide, hn::InterleaveLower(d, members[0], members[1]));
  const auto high = hn::BitCast(wide, hn::InterleaveUpper(d, members[0], members[1]));
  const auto low_rest = hn::BitCast(wide, hn::InterleaveLower(d, members[2], members[3]));
  const auto high_rest = hn::BitCast(wide, hn::InterleaveUpper(d, members[2], members[3]));
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(wide, low, low_rest)), d, to);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(wide, low, low_rest)), d, to + lanes);
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(wide, high, high_rest)), d, to + 2 * lanes);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(wide, high, high_rest)), d, to + 3 * lanes);
}

// Products of 16-bit numbers, added in pairs: those of bytes that are added in 16 bits would saturate. The
// bytes of x are vectors here, so they are split where they are. Those of integer_panels.cc are one quad for
// all columns, which is widened with one instruction less.
struct PairProducts {
  static constexpr int kVectors = 2;

  template <class DB>
  struct Sum {
    using D = Sums32<DB>;
    using DW = hn::Repartition<std::int16_t, DB>;
    using DU = hn::Repartition<std::uint16_t, DB>;
    struct Weights {
      hn::Vec<DW> even, odd;
    };
    hn::Vec<D> sum, rest;  // a vector's products go to two vectors, as the CPU divides them

    static HWY_INLINE Weights Split(hn::Vec<DB> weights) {
      const auto pairs = hn::BitCast(DW(), weights);
      return {hn::ShiftRight<8>(hn::ShiftLeft<8>(pairs)), hn::ShiftRight<8>(pairs)};
    }
    HWY_INLINE void Clear() { sum = rest = hn::Zero(D()); }
    HWY_INLINE void Add(hn::Vec<DB> x, Weights weights) {
      const auto pairs = hn::BitCast(DU(), x);
      const auto even = hn::BitCast(DW(), hn::And(pairs, hn::Set(DU(), 0xFF)));
      const auto odd = hn::BitCast(DW(), hn::ShiftRight<8>(pairs));
      sum = hn::ReorderWidenMulAccumulate(D(), weights.even, even, sum, rest);
      sum = hn::ReorderWidenMulAccumulate(D(), weights.odd, odd, sum, rest);
    }
    HWY_INLINE hn::Vec<D> Total() const { return hn::RearrangeToOddPlusEven(sum, rest); }
  };
};

#if HWY_TARGET == HWY_AVX3

struct VnniProducts {
  static constexpr int kVectors = 4;

  template <class DB>
  struct Sum {
    using D = Sums32<DB>;
    using Weights = hn::Vec<DB>;
    hn::Vec<D> sum;

    static HWY_INLINE Weights Split(hn::Vec<DB> weights) { return weights; }
    HWY_INLINE void Clear() { sum = hn::Zero(D()); }
    HWY_INLINE void Add(hn::Vec<DB> x, Weights weights) { AddVnni(sum, x, weights); }
    HWY_INLINE hn::Vec<D> Total() const { return sum; }
  };
};

#endif

// Sums of kCount vectors: a struct in a struct as in panels.cc. Their quads, and what `finish` gets of them,
// are `step` apart.
template <class Way, class DB, int kCount>
struct Sums {
  typename Way::template Sum<DB> sum;
  Sums<Way, DB, kCount - 1> next;

  HWY_INLINE void Clear() {
    sum.Clear();
    next.Clear();
  }
  HWY_INLINE void Add(const std::uint8_t* x, std::int64_t step, typename Way::template Sum<DB>::Weights w) {
    sum.Add(hn::LoadU(DB(), x), w);
    next.Add(x + step, step, w);
  }
  template <class Finish>
  HWY_INLINE void ForEach(std::int64_t at, std::int64_t step, const Finish& finish) const {
    finish(sum.Total(), at);
    next.ForEach(at + step, step, finish);
  }
  // The same less zero * counts.
  template <class Finish>
  HWY_INLINE void ForEachLess(hn::Vec<Sums32<DB>> zero, const Sums& counts, std::int64_t at,
                              std::int64_t step, const Finish& finish) const {
    finish(hn::Sub(sum.Total(), hn::Mul(zero, counts.sum.Total())), at);
    next.ForEachLess(zero, counts.next, at + step, step, finish);
  }
};

template <class Way, class DB>
struct Sums<Way, DB, 0> {
  HWY_INLINE void Clear() {}
  HWY_INLINE void Add(const std::uint8_t*, std::int64_t, typename Way::template Sum<DB>::Weights) {}
  template <class Finish>
  HWY_INLINE void ForEach(std::int64_t, std::int64_t, const Finish&) const {}
  template <class Finish>
  HWY_INLINE void ForEachLess(hn::Vec<Sums32<DB>>, const Sums&, std::int64_t, std::int64_t,
                              const Finish&) const {}
};

}  // namespace rewire::kernel::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
#endif
