// SPDX-License-Identifier: Apache-2.0
// Compiled once for each instruction set; see Highway's foreach_target.h.
#include "rewire/kernels/cpu/product/integer_panels.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "rewire/kernels/cpu/product/integer_panels.cc"
#include <hwy/foreach_target.h>
// Behind it.
#include "rewire/kernels/cpu/product/integer_finish-inl.h"
#include "rewire/kernels/cpu/product/vnni-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rewire::kernel::cpu::HWY_NAMESPACE {

using D = hn::CappedTag<std::int32_t, kHalfPanel>;
using V = hn::Vec<D>;
using DF = hn::Rebind<float, D>;
using VF = hn::Vec<DF>;

inline std::int64_t Columns() { return static_cast<std::int64_t>(hn::Lanes(D())); }

// A way to add four products to each sum: what it holds of a quad of a row, of the weights of a vector of
// columns, and of their sums. This is one that reads the rows where they are.
struct RowsInPlace {
  using Rows = const std::uint8_t* const*;
  static HWY_INLINE Rows Next(Rows rows) { return rows + 1; }
};

#if HWY_TARGET == HWY_SCALAR

struct Ones : RowsInPlace {
  static constexpr int kMostRows = 4, kMostInPlace = 4;
  static constexpr int kMostVectors = 1;
  using Quad = const std::uint8_t*;
  using Weights = const std::int8_t*;
  static HWY_INLINE Quad LoadQuad(Rows rows, std::int64_t k) { return *rows + k; }
  static HWY_INLINE Weights LoadWeights(const std::int8_t* from) { return from; }

  struct Sum {
    std::uint32_t sum;
    HWY_INLINE void Clear() { sum = 0; }
    HWY_INLINE void Add(Quad quad, Weights weights) {
      for (int i = 0; i < kQuad; ++i) sum += static_cast<std::uint32_t>(std::int32_t{quad[i]} * weights[i]);
    }
    HWY_INLINE V Total() const { return hn::Set(D(), static_cast<std::int32_t>(sum)); }
  };
};

#else

// Completes a row's products before those of the next one. Otherwise g++ loads the quads of all rows first,
// and sums have to leave their registers.
template <class Vector>
HWY_INLINE void CompleteInOrder(Vector& first, Vector& second) {
#if HWY_ARCH_X86 && HWY_COMPILER_GCC && !HWY_COMPILER_CLANG
  asm volatile("" : "+v"(first.raw), "+v"(second.raw));
#else
  static_cast<void>(first), static_cast<void>(second);
#endif
}

// Products of 16-bit numbers, added in pairs: those of bytes that are added in 16 bits would saturate.
struct Pairs : RowsInPlace {
#if HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM
  static constexpr int kMostRows = 8, kMostInPlace = 8;
#else
  static constexpr int kMostInPlace = 4;
  static constexpr int kMostRows = 6;  // their sums, the weights, a quad and a product fill 16 registers
#endif
  static constexpr int kMostVectors = 1;
  using DW = hn::Repartition<std::int16_t, D>;
  using DB = hn::Half<hn::Repartition<std::int8_t, D> >;  // as many as DW has
  using Quad = hn::Vec<DW>;
  struct Weights {
    // Both halves of the columns; with AVX2 those of each half of 128 bits.
    hn::Vec<DW> low, high;
  };

  // Bytes beside zeros, which instructions that widen bytes take twice the time for: they move them from one
  // half of a vector to the other, too.
  static HWY_INLINE Quad LoadQuad(Rows rows, std::int64_t k) {
    std::uint32_t quad = 0;
    std::memcpy(&quad, *rows + k, sizeof(quad));
    const hn::Repartition<std::uint8_t, D> d;
    const auto bytes = hn::BitCast(d, hn::Set(hn::Repartition<std::uint32_t, D>(), quad));
    return hn::BitCast(DW(), hn::InterleaveLower(d, bytes, hn::Zero(d)));
  }
#if HWY_TARGET == HWY_AVX2
  static HWY_INLINE Weights LoadWeights(const std::int8_t* from) {
    const auto bytes = hn::LoadU(hn::Repartition<std::int8_t, D>(), from).raw;
    return {hn::Vec<DW>{_mm256_srai_epi16(_mm256_unpacklo_epi8(bytes, bytes), 8)}, hn::Vec<DW> {
              _mm256_srai_epi16(_mm256_unpackhi_epi8(bytes, bytes), 8)
            }};
  }
#else
  static HWY_INLINE Weights LoadWeights(const std::int8_t* from) {
    const DB d;
    return {hn::PromoteTo(DW(), hn::LoadU(d, from)), hn::PromoteTo(DW(), hn::LoadU(d, from + hn::Lanes(d)))};
  }
#endif

  struct Sum {
    V low, low_rest, high, high_rest;  // a vector's products go to two vectors, as the CPU divides them

    HWY_INLINE void Clear() { low = low_rest = high = high_rest = hn::Zero(D()); }
    HWY_INLINE void Add(Quad quad, Weights weights) {
      low = hn::ReorderWidenMulAccumulate(D(), weights.low, quad, low, low_rest);
      high = hn::ReorderWidenMulAccumulate(D(), weights.high, quad, high, high_rest);
      CompleteInOrder(low, high);
    }
    // A column has two neighbors, of its first and its second pair of products.
    HWY_INLINE V Total() const {
      const V lower = hn::RearrangeToOddPlusEven(low, low_rest);
      const V upper = hn::RearrangeToOddPlusEven(high, high_rest);
#if HWY_TARGET == HWY_AVX2
      return V{_mm256_hadd_epi32(lower.raw, upper.raw)};
#else
      return hn::Add(hn::ConcatEven(D(), upper, lower), hn::ConcatOdd(D(), upper, lower));
#endif
    }
  };
};

// The same by rows that have been widened, once for all columns of a tile.
struct WidePairs : Pairs {
  static constexpr std::int64_t kDepth = 512;  // so many elements of each row at once
  using Rows = const std::int16_t*;
  static HWY_INLINE Rows Next(Rows rows) { return rows + kDepth; }
  static HWY_INLINE Quad LoadQuad(Rows rows, std::int64_t k) {
    std::uint64_t quad = 0;
    std::memcpy(&quad, rows + k, sizeof(quad));
    return hn::BitCast(DW(), hn::Set(hn::Repartition<std::uint64_t, D>(), quad));
  }
};

#endif

#if HWY_TARGET == HWY_AVX3

struct Vnni : RowsInPlace {
  static constexpr int kMostRows = 8, kMostInPlace = 8;
  static constexpr int kMostVectors = 2;
  using Quad = V;
  using Weights = V;

  static HWY_INLINE Quad LoadQuad(Rows rows, std::int64_t k) {
    std::int32_t quad = 0;
    std::memcpy(&quad, *rows + k, sizeof(quad));
    return hn::Set(D(), quad);
  }
  static HWY_INLINE Weights LoadWeights(const std::int8_t* from) {
    return hn::BitCast(D(), hn::LoadU(hn::Repartition<std::int8_t, D>(), from));
  }

  struct Sum {
    V sum;
    HWY_INLINE void Clear() { sum = hn::Zero(D()); }
    HWY_INLINE void Add(Quad quad, Weights weights) { AddVnni(sum, quad, weights); }
    HWY_INLINE V Total() const { return sum; }
  };
};

#endif

// Sums of kRows rows by one or two vectors of columns: a struct in a struct as in panels.cc.
template <class Way, int kRows>
struct Sums {
  typename Way::Sum left, right;
  Sums<Way, kRows - 1> next;

  HWY_INLINE void Clear() {
    left.Clear();
    right.Clear();
    next.Clear();
  }
  template <int kVectors>
  HWY_INLINE void AddProducts(typename Way::Rows rows, std::int64_t k, typename Way::Weights first,
                              typename Way::Weights second) {
    const typename Way::Quad quad = Way::LoadQuad(rows, k);
    left.Add(quad, first);
    if constexpr (kVectors == 2) right.Add(quad, second);
    next.template AddProducts<kVectors>(Way::Next(rows), k, first, second);
  }
  // Adds to what is there, unless this is the first part of the sums.
  template <int kVectors>
  HWY_INLINE void Store(bool is_first, std::int32_t* to) const {
    const auto store = [&](V sum, std::int32_t* at)
                           HWY_ATTR { hn::Store(is_first ? sum : hn::Add(sum, hn::Load(D(), at)), D(), at); };
    store(left.Total(), to);
    if constexpr (kVectors == 2) store(right.Total(), to + Columns());
    next.template Store<kVectors>(is_first, to + kPanelWidth);
  }
};

template <class Way>
struct Sums<Way, 0> {
  HWY_INLINE void Clear() {}
  template <int kVectors>
  HWY_INLINE void AddProducts(typename Way::Rows, std::int64_t, typename Way::Weights,
                              typename Way::Weights) {}
  template <int kVectors>
  HWY_INLINE void Store(bool, std::int32_t*) const {}
};

// Adds the products of `depth` elements of the rows. Returns the quads of the columns behind them.
template <class Way, int kRows, int kVectors>
HWY_INLINE const std::int8_t* AddDepth(typename Way::Rows rows, std::int64_t depth,
                                       const std::int8_t* HWY_RESTRICT panel, std::int64_t width,
                                       Sums<Way, kRows>& sums) {
  for (std::int64_t k = 0; k < depth; k += kQuad) {
    const auto first = Way::LoadWeights(panel);
    const auto second = kVectors == 2 ? Way::LoadWeights(panel + Columns() * kQuad) : first;
    sums.template AddProducts<kVectors>(rows, k, first, second);
    panel += width * kQuad;
  }
  return panel;
}

HWY_NOINLINE std::int32_t SumOf(const std::uint8_t* from, std::int64_t count) {
  std::uint64_t sum = 0;
  std::int64_t k = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::Repartition<std::uint8_t, D> d;
  const hn::Repartition<std::uint64_t, D> wide;
  auto sums = hn::Zero(wide);
  for (; k + static_cast<std::int64_t>(hn::Lanes(d)) <= count; k += static_cast<std::int64_t>(hn::Lanes(d)))
    sums = hn::Add(sums, hn::SumsOf8(hn::LoadU(d, from + k)));
  sum = hn::GetLane(hn::SumOfLanes(wide, sums));
  constexpr std::int64_t kEight = 8;
  const hn::CappedTag<std::uint8_t, kEight> some;
  for (; k + kEight <= count; k += kEight) sum += hn::GetLane(hn::SumsOf8(hn::LoadU(some, from + k)));
#endif
  for (; k < count; ++k) sum += from[k];
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(sum));
}

// The sums of the bytes of each row, if its segments are short. Calls and sums in vectors would take longer.
inline bool HasShortSegments(const IntegerTile& tile) {
  constexpr std::int64_t kFewBytes = 32, kMostQuads = 128;  // whose sums 16 bits hold
  return tile.depth <= kFewBytes && tile.segments * PaddedDepth(tile.depth) <= kMostQuads * kQuad;
}
template <int kRows>
HWY_INLINE void SumShortSegments(const IntegerTile& tile, std::int32_t* row_sums) {
  constexpr std::uint32_t kEven = 0x00FF00FF;
  const std::int64_t last = PaddedDepth(tile.depth) - kQuad;
  const std::uint32_t of_last = ~std::uint32_t{0} >> (8 * (last + kQuad - tile.depth));
  const auto quad_at = [](const std::uint8_t* from) {
    std::uint32_t quad = 0;
    std::memcpy(&quad, from, sizeof(quad));
    return quad;
  };
  std::uint32_t sums[kRows] = {};  // of the bytes at even places, and of those at odd ones above
  const auto add = [](std::uint32_t quad, std::uint32_t& sum) {
    sum += (quad & kEven) + (quad >> 8 & kEven);
  };
  for (std::int64_t s = 0; s < tile.segments; ++s) {
    for (int i = 0; i < kRows; ++i) {
      const std::uint8_t* row = tile.rows[s * kRows + i];
      for (std::int64_t k = 0; k < last; k += kQuad) add(quad_at(row + k), sums[i]);
      add(quad_at(row + last) & of_last, sums[i]);
    }
  }
  for (int i = 0; i < kRows; ++i)
    row_sums[i] = static_cast<std::int32_t>((sums[i] & 0xFFFF) + (sums[i] >> 16));
}

// Finishes the products of `rows` rows by a vector of columns from `from` on; those of the rows lie
// `step` apart. Nothing of the tile is read between stores, which may lie anywhere as far as the compiler
// knows.
template <typename T>
HWY_NOINLINE void FinishColumnsAs(const IntegerTile& tile, std::int64_t from, int rows,
                                  const std::int32_t* products, std::int64_t step,
                                  const std::int32_t* row_sums) {
  const std::int64_t used = tile.columns - from, step_of_out = tile.step;
  const IntegerFinish finish = tile.finish;
  const V start = LoadSome(D(), tile.start + from, used);
  const bool has_zeros = tile.w_zero != nullptr;
  const V w_zero = has_zeros ? LoadSome(D(), tile.w_zero + from, used) : hn::Zero(D());
  const VF scale = finish.scale != nullptr ? LoadSome(DF(), finish.scale + from, used) : hn::Zero(DF());
  const VF bias = finish.bias != nullptr ? LoadSome(DF(), finish.bias + from, used) : hn::Zero(DF());
  T* out = static_cast<T*>(tile.out) + from;
  for (int i = 0; i < rows; ++i, out += step_of_out) {
    V sum = hn::Add(start, hn::Load(D(), products + i * step));
    if (has_zeros) sum = hn::Sub(sum, hn::Mul(w_zero, hn::Set(D(), row_sums[i])));
    StoreFinished(D(), sum, finish, scale, bias, out, used);
  }
}

HWY_INLINE void FinishColumns(const IntegerTile& tile, std::int64_t from, int rows,
                              const std::int32_t* products, std::int64_t step, const std::int32_t* row_sums) {
  ForFinishedType(tile.finish.kind, [&](auto of_type) HWY_ATTR {
    FinishColumnsAs<decltype(of_type)>(tile, from, rows, products, step, row_sums);
  });
}

void Finish(const IntegerTile& tile, const std::int32_t* products, const std::int32_t* row_sums) {
  for (std::int64_t from = 0; from < tile.columns; from += Columns())
    FinishColumns(tile, from, tile.count, products + from, kPanelWidth, row_sums);
}

// The products of kRows rows of the tile by kVectors vectors of columns, from `row` and column `from` on.
template <class Way, int kRows, int kVectors>
HWY_NOINLINE void MultiplyColumns(const IntegerTile& tile, int row, std::int64_t from,
                                  std::int32_t* products) {
  const std::int8_t* panel = tile.panel + from * kQuad;
  Sums<Way, kRows> sums;
  sums.Clear();
  for (std::int64_t s = 0; s < tile.segments; ++s) {
    const std::uint8_t* rows[kRows];
    for (int i = 0; i < kRows; ++i) rows[i] = tile.rows[s * tile.count + row + i];
    panel = AddDepth<Way, kRows, kVectors>(rows, tile.depth, panel, tile.width, sums);
  }
  sums.template Store<kVectors>(true, products + row * kPanelWidth + from);
}

template <class Way, int kRows>
HWY_INLINE void MultiplyInPlace(const IntegerTile& tile, int row, std::int32_t* products) {
  std::int64_t from = 0;
  if constexpr (Way::kMostVectors == 2) {
    for (; from + 2 * Columns() <= tile.width && from + Columns() < tile.columns; from += 2 * Columns())
      MultiplyColumns<Way, kRows, 2>(tile, row, from, products);
  }
  for (; from < tile.columns; from += Columns()) MultiplyColumns<Way, kRows, 1>(tile, row, from, products);
}

#if HWY_TARGET != HWY_SCALAR

// Widens kCount bytes, or as many as a vector has.
template <std::int64_t kCount>
HWY_INLINE std::int64_t WidenSome(const std::uint8_t* HWY_RESTRICT from, std::int16_t* HWY_RESTRICT to) {
  const hn::CappedTag<std::int16_t, kCount> d;
  const hn::Rebind<std::uint8_t, decltype(d)> of_bytes;
  hn::StoreU(hn::PromoteTo(d, hn::LoadU(of_bytes, from)), d, to);
  return static_cast<std::int64_t>(hn::Lanes(d));
}
// Widens a multiple of 4 bytes.
HWY_INLINE void WidenBytes(const std::uint8_t* HWY_RESTRICT from, std::int64_t count,
                           std::int16_t* HWY_RESTRICT to) {
  constexpr std::int64_t kMany = 16, kEight = 8;
  std::int64_t k = 0;
  while (k + kMany <= count) k += WidenSome<kMany>(from + k, to + k);
  while (k + kEight <= count) k += WidenSome<kEight>(from + k, to + k);
  if (k < count) WidenSome<kQuad>(from + k, to + k);
}

template <int kRows>
HWY_NOINLINE void MultiplyWide(const std::int16_t* rows, std::int64_t depth, const std::int8_t* panel,
                               std::int64_t width, bool is_first, std::int32_t* products) {
  Sums<WidePairs, kRows> sums;
  sums.Clear();
  AddDepth<WidePairs, kRows, 1>(rows, depth, panel, width, sums);
  sums.template Store<1>(is_first, products);
}

// The tile has one segment. Deep rows are widened in parts, which stay in the first cache with a part of the
// panel.
template <int kRows>
HWY_NOINLINE void MultiplyWidened(const IntegerTile& tile, std::int32_t* products) {
  HWY_ALIGN std::int16_t rows[kRows * WidePairs::kDepth];
  const std::int64_t padded = PaddedDepth(tile.depth);
  const std::int8_t* panel = tile.panel;
  for (std::int64_t k = 0; k == 0 || k < padded; k += WidePairs::kDepth) {
    const std::int64_t depth = std::min(WidePairs::kDepth, padded - k);
    for (int i = 0; i < kRows; ++i) WidenBytes(tile.rows[i] + k, depth, rows + i * WidePairs::kDepth);
    for (std::int64_t from = 0; from < tile.columns; from += Columns())
      MultiplyWide<kRows>(rows, depth, panel + from * kQuad, tile.width, k == 0, products + from);
    panel += depth * tile.width;
  }
}

#endif

void SumRows(const IntegerTile& tile, std::int32_t* row_sums) {
  std::fill_n(row_sums, tile.count, 0);
  for (std::int64_t s = 0; s < tile.segments; ++s) {
    for (int i = 0; i < tile.count; ++i) row_sums[i] += SumOf(tile.rows[s * tile.count + i], tile.depth);
  }
}

// Rows in one segment are widened. Windows of a convolution, whose rows are in several, are read in place.
template <class Way, int kRows>
HWY_INLINE void MultiplyRows(const IntegerTile& tile, std::int32_t* products) {
#if HWY_TARGET != HWY_SCALAR
  if constexpr (std::is_same_v<Way, Pairs>) {
    if (tile.segments == 1) return MultiplyWidened<kRows>(tile, products);
  }
#endif
  if constexpr (kRows > Way::kMostInPlace) {
    constexpr int kHalf = (kRows + 1) / 2;
    MultiplyInPlace<Way, kHalf>(tile, 0, products);
    MultiplyInPlace<Way, kRows - kHalf>(tile, kHalf, products);
  } else {
    MultiplyInPlace<Way, kRows>(tile, 0, products);
  }
}

template <class Way, int kRows>
void RunRows(const IntegerTile& tile) {
  std::int32_t sums_of_tile[kRows] = {};
  if (tile.w_zero != nullptr && tile.row_sums == nullptr) {
    if (HasShortSegments(tile))
      SumShortSegments<kRows>(tile, sums_of_tile);
    else
      SumRows(tile, sums_of_tile);
  }
  HWY_ALIGN std::int32_t products[kRows * kPanelWidth];
  MultiplyRows<Way, kRows>(tile, products);
  for (std::int64_t from = 0; from < tile.columns; from += Columns())
    FinishColumns(tile, from, kRows, products + from, kPanelWidth,
                  tile.row_sums != nullptr ? tile.row_sums : sums_of_tile);
}

template <class Way, int kRows = Way::kMostRows>
void RunPanel(const IntegerTile& tile) {
  if (tile.count == kRows) return RunRows<Way, kRows>(tile);
  if constexpr (kRows > 1) RunPanel<Way, kRows - 1>(tile);
}

template <class Way>
IntegerPanelKernel KernelOf() {
  return {Way::kMostRows, Way::kMostInPlace, &RunPanel<Way>, &SumRows, &Finish};
}

IntegerPanelKernel IntegerPanelsOfTarget([[maybe_unused]] bool any_instruction) {
#if HWY_TARGET == HWY_SCALAR
  return KernelOf<Ones>();
#else
#if HWY_TARGET == HWY_AVX3
  if (any_instruction && HasVnni()) return KernelOf<Vnni>();
#endif
  return KernelOf<Pairs>();
#endif
}

}  // namespace rewire::kernel::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rewire::kernel::cpu {

HWY_EXPORT(IntegerPanelsOfTarget);

IntegerPanelKernel ChooseIntegerPanelKernel(bool any_instruction) {
  return HWY_DYNAMIC_DISPATCH(IntegerPanelsOfTarget)(any_instruction);
}

const IntegerPanelKernel& BestIntegerPanelKernel() {
  static const IntegerPanelKernel kBest = ChooseIntegerPanelKernel(true);
  return kBest;
}

}  // namespace rewire::kernel::cpu
#endif
