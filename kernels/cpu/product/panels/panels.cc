// SPDX-License-Identifier: Apache-2.0
// Compiled once for each instruction set; see Highway's foreach_target.h.
#include "rewire/kernels/cpu/product/panels/panels.h"

#include <algorithm>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "rewire/kernels/cpu/product/panels/panels.cc"
#include <hwy/foreach_target.h>
// Behind it.
#include "rewire/kernels/cpu/elementwise/activated-inl.h"
#include "rewire/kernels/cpu/math/bf16-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rewire::kernel::cpu::HWY_NAMESPACE {

using D = hn::CappedTag<float, kHalfPanel>;
using V = hn::Vec<D>;

// 32 registers or 16. CPUs of x86 without SSE4 are older than 2009: a third of the code for them is spared.
#if HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM
constexpr int kMostRows = 8;
#elif HWY_TARGET == HWY_SCALAR && HWY_ARCH_X86
constexpr int kMostRows = kRowsInOneOrder;
#else
constexpr int kMostRows = 6;
#endif
// By two panels of two vectors each.
constexpr int kWideRows = HWY_TARGET <= HWY_AVX3 ? 6 : 0;

// Without this g++ loads a vector anew for each of two or three rows, and loads are what such tiles wait for.
HWY_INLINE V InRegister(V v) {
#if HWY_ARCH_X86 && HWY_COMPILER_GCC && !HWY_COMPILER_CLANG && HWY_TARGET != HWY_SCALAR
  asm("" : "+v"(v.raw));
#endif
  return v;
}

// A way to multiply units: how the products of one unit of a row by those of a vector of columns are added.
// They may take several parts.
struct FloatUnits {
  using Unit = float;
  static constexpr int kParts = 1;
  template <int kPart>
  static HWY_INLINE V Load(const float* from) {
    return InRegister(hn::LoadU(D(), from));
  }
  template <int kPart>
  static HWY_INLINE V Spread(const float* from) {
    return hn::Set(D(), *from);
  }
  static HWY_INLINE V MulAdd(V factor, V weights, V sum) { return hn::MulAdd(factor, weights, sum); }
  using Rounding = Bf16ByBits;
};

// Rows of floats by weights of f16, which become floats in registers.
struct HalfUnits : FloatUnits {
  using Unit = hwy::float16_t;
  template <int kPart>
  static HWY_INLINE V Load(const Unit* from) {
    return InRegister(hn::PromoteTo(D(), hn::LoadU(hn::Rebind<Unit, D>(), from)));
  }
};

// Pairs of bf16 on any CPU, first the products of the lower elements, then those of the upper ones. The bits
// of a bf16 are the upper ones of the float of the same value.
struct WidenedPairs {
  using Unit = float;
  static constexpr int kParts = 2;
  using Rounding = Bf16ByBits;
  using DU = hn::RebindToUnsigned<D>;

  template <int kPart>
  static HWY_INLINE V Load(const float* from) {
    return InRegister(Widened<kPart>(hn::BitCast(DU(), hn::LoadU(D(), from))));
  }
  template <int kPart>
  static HWY_INLINE V Spread(const float* from) {
    std::uint32_t pair = 0;
    std::memcpy(&pair, from, sizeof(pair));
    return Widened<kPart>(hn::Set(DU(), pair));
  }
  static HWY_INLINE V MulAdd(V factor, V weights, V sum) { return hn::MulAdd(factor, weights, sum); }

 private:
  template <int kPart>
  static HWY_INLINE V Widened(hn::Vec<DU> pairs) {
    return hn::BitCast(D(),
                       kPart == 0 ? hn::ShiftLeft<16>(pairs) : hn::And(pairs, hn::Set(DU(), 0xFFFF0000u)));
  }
};

#if HWY_TARGET == HWY_AVX3

// AVX512-BF16, which not every CPU with AVX-512 has: both products of a pair in one instruction. Written as
// such, since the target as a whole is compiled without it.
struct PairInstruction {
  using Unit = float;
  static constexpr int kParts = 1;
  using Rounding = Bf16ByInstruction;
  template <int kPart>
  static HWY_INLINE V Load(const float* from) {
    return InRegister(hn::LoadU(D(), from));
  }
  template <int kPart>
  static HWY_INLINE V Spread(const float* from) {
    std::int32_t pair = 0;
    std::memcpy(&pair, from, sizeof(pair));
    return hn::BitCast(D(), hn::Set(hn::RebindToSigned<D>(), pair));
  }
  static HWY_INLINE V MulAdd(V factor, V weights, V sum) {
    asm("vdpbf16ps %2, %1, %0" : "+v"(sum.raw) : "v"(weights.raw), "v"(factor.raw));
    return sum;
  }
};

#endif

// Sums of kRows rows by one or two vectors of columns. A struct in a struct, and not an array: every compiler
// keeps its members in registers.
template <int kRows>
struct Sums {
  V left, right;
  Sums<kRows - 1> next;

  HWY_INLINE void Fill(V to_left, V to_right) {
    left = to_left;
    right = to_right;
    next.Fill(to_left, to_right);
  }
  template <class Way, int kPart, int kVectors>
  HWY_INLINE void AddProducts(const float* const* rows, std::int64_t k, V first, V second) {
    const V factor = Way::template Spread<kPart>(*rows + k);
    left = Way::MulAdd(factor, first, left);
    if constexpr (kVectors == 2) right = Way::MulAdd(factor, second, right);
    next.template AddProducts<Way, kPart, kVectors>(rows + 1, k, first, second);
  }
  HWY_INLINE void AddAll(const Sums& other) {
    left = hn::Add(left, other.left);
    right = hn::Add(right, other.right);
    next.AddAll(other.next);
  }
  // All rows to `out`, `step` apart.
  template <int kVectors>
  HWY_INLINE void Store(float* out, std::int64_t step) const {
    hn::StoreU(left, D(), out);
    if constexpr (kVectors == 2) hn::StoreU(right, D(), out + hn::Lanes(D()));
    next.template Store<kVectors>(out + step, step);
  }
  // The same rounded to bf16.
  template <class Rounding, int kVectors>
  HWY_INLINE void StoreRounded(std::uint16_t* out, std::int64_t step) const {
    Rounding::Store(D(), left, out);
    if constexpr (kVectors == 2) Rounding::Store(D(), right, out + hn::Lanes(D()));
    next.template StoreRounded<Rounding, kVectors>(out + step, step);
  }
  // Floats, or bf16.
  template <int kVectors, typename T>
  HWY_INLINE void AddFrom(const T* addend, std::int64_t step) {
    left = hn::Add(left, LoadFloats(D(), addend));
    if constexpr (kVectors == 2) right = hn::Add(right, LoadFloats(D(), addend + hn::Lanes(D())));
    next.template AddFrom<kVectors>(addend + step, step);
  }
  template <int kVectors, class F>
  HWY_INLINE void Activate(const F& f) {
    left = f(D(), left);
    if constexpr (kVectors == 2) right = f(D(), right);
    next.template Activate<kVectors>(f);
  }
};

template <>
struct Sums<0> {
  HWY_INLINE void Fill(V, V) {}
  template <class Way, int kPart, int kVectors>
  HWY_INLINE void AddProducts(const float* const*, std::int64_t, V, V) {}
  HWY_INLINE void AddAll(const Sums&) {}
  template <int kVectors>
  HWY_INLINE void Store(float*, std::int64_t) const {}
  template <class Rounding, int kVectors>
  HWY_INLINE void StoreRounded(std::uint16_t*, std::int64_t) const {}
  template <int kVectors, typename T>
  HWY_INLINE void AddFrom(const T*, std::int64_t) {}
  template <int kVectors, class F>
  HWY_INLINE void Activate(const F&) {}
};

// The products of one k.
template <class Way, int kRows, int kVectors, int kPart = 0>
HWY_INLINE void AddStep(const float* const* rows, std::int64_t k,
                        const typename Way::Unit* HWY_RESTRICT panel, Sums<kRows>& sums) {
  const V first = Way::template Load<kPart>(panel);
  const V second = kVectors == 2 ? Way::template Load<kPart>(panel + hn::Lanes(D())) : first;
  sums.template AddProducts<Way, kPart, kVectors>(rows, k, first, second);
  if constexpr (kPart + 1 < Way::kParts) AddStep<Way, kRows, kVectors, kPart + 1>(rows, k, panel, sums);
}

// The products of one k by two panels: each unit of a row is loaded once for both.
template <class Way, int kPart, int kRows>
HWY_INLINE void AddWideProducts(const float* const* rows, std::int64_t k, V a, V b, V c, V d,
                                Sums<kRows>& left, Sums<kRows>& right) {
  if constexpr (kRows > 0) {
    const V factor = Way::template Spread<kPart>(*rows + k);
    left.left = Way::MulAdd(factor, a, left.left);
    left.right = Way::MulAdd(factor, b, left.right);
    right.left = Way::MulAdd(factor, c, right.left);
    right.right = Way::MulAdd(factor, d, right.right);
    AddWideProducts<Way, kPart>(rows + 1, k, a, b, c, d, left.next, right.next);
  }
}

template <class Way, int kRows, int kPart = 0>
HWY_INLINE void AddWideStep(const float* const* rows, std::int64_t k,
                            const typename Way::Unit* HWY_RESTRICT first,
                            const typename Way::Unit* HWY_RESTRICT second, Sums<kRows>& left,
                            Sums<kRows>& right) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(D()));
  AddWideProducts<Way, kPart>(rows, k, Way::template Load<kPart>(first),
                              Way::template Load<kPart>(first + lanes), Way::template Load<kPart>(second),
                              Way::template Load<kPart>(second + lanes), left, right);
  if constexpr (kPart + 1 < Way::kParts)
    AddWideStep<Way, kRows, kPart + 1>(rows, k, first, second, left, right);
}

// Units of a cache line.
template <class Way>
constexpr std::int64_t kLine = 64 / sizeof(typename Way::Unit);

// Adds the products of all segments. A multiplier accepts a new product in each cycle and finishes it about
// five cycles later. So with few rows, the sums of several k run side by side, because a single sum would
// wait.
template <class Way, int kRows, int kVectors, bool kFetches>
HWY_INLINE void AddSegments(const PanelTile& tile, const typename Way::Unit* HWY_RESTRICT panel,
                            std::int64_t width, Sums<kRows>& sums) {
  constexpr int kSideBySide = kRows == 1 ? 4 : kRows < kRowsInOneOrder ? 2 : 1;
  const V zero = hn::Zero(D());
  Sums<kRows> second, third, fourth;
  second.Fill(zero, zero);
  third.Fill(zero, zero);
  fourth.Fill(zero, zero);
  const typename Way::Unit* fetched = panel + tile.ahead;
  for (std::int64_t s = 0; s < tile.segments; ++s) {
    const float* rows[kRows];
    for (int i = 0; i < kRows; ++i) rows[i] = tile.rows[s * kRows + i];
    std::int64_t k = 0;
    if constexpr (kSideBySide > 1) {
      for (; k + kSideBySide <= tile.depth; k += kSideBySide) {
        AddStep<Way, kRows, kVectors>(rows, k, panel, sums);
        AddStep<Way, kRows, kVectors>(rows, k + 1, panel + width, second);
        if constexpr (kSideBySide == 4) {
          AddStep<Way, kRows, kVectors>(rows, k + 2, panel + 2 * width, third);
          AddStep<Way, kRows, kVectors>(rows, k + 3, panel + 3 * width, fourth);
        }
        panel += kSideBySide * width;
      }
    }
    for (; k < tile.depth; ++k) {
      if constexpr (kFetches) {
        __builtin_prefetch(fetched, 0, 2);
        fetched += kLine<Way>;
      }
      AddStep<Way, kRows, kVectors>(rows, k, panel, sums);
      panel += width;
    }
  }
  if constexpr (kSideBySide == 4) {
    third.AddAll(fourth);
    second.AddAll(third);
  }
  if constexpr (kSideBySide > 1) sums.AddAll(second);
}

// `used` elements, with 0 behind them up to `count`.
template <typename T>
inline const T* Padded(const T* from, std::int64_t used, std::int64_t count, T* to) {
  std::fill(std::copy_n(from, used, to), to + count, T{0});
  return to;
}

// `rows` rows of `used` elements each to `to`, whose rows have `width`.
template <typename T>
inline const T* CopyRows(const T* from, std::int64_t step, int rows, std::int64_t used, std::int64_t width,
                         T* to) {
  for (int i = 0; i < rows; ++i) Padded(from + i * step, used, width, to + i * width);
  return to;
}

// The bias of kVectors vectors of columns from `column` on, of which `used` are wanted, in all rows.
template <int kRows, int kVectors>
HWY_INLINE void FillWithBias(const PanelTile& tile, std::int64_t column, std::int64_t used,
                             Sums<kRows>& sums) {
  const D d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  V left = hn::Zero(d), right = left;
  if (tile.bias != nullptr) {
    HWY_ALIGN float edge[kVectors * hn::MaxLanes(D())];
    const float* bias = tile.bias + column;
    if (used < kVectors * lanes) bias = Padded(bias, used, kVectors * lanes, edge);
    left = hn::LoadU(d, bias);
    if (kVectors == 2) right = hn::LoadU(d, bias + lanes);
  }
  sums.Fill(left, right);
}

// Adds the tile's columns of an addend from `addend` on.
template <int kRows, int kVectors, typename T>
HWY_INLINE void AddColumns(const PanelTile& tile, const T* addend, std::int64_t used, Sums<kRows>& sums) {
  const std::int64_t width = kVectors * static_cast<std::int64_t>(hn::Lanes(D()));
  HWY_ALIGN T edge[kRows * kVectors * hn::MaxLanes(D())];
  if (used < width)
    sums.template AddFrom<kVectors>(CopyRows(addend, tile.step, kRows, used, width, edge), width);
  else
    sums.template AddFrom<kVectors>(addend, tile.step);
}

// Adds the addend, activates, and writes the tile's columns from `column` on, whatever the tile asks for.
// Ways to multiply that round alike share this code, and the sums come through memory.
template <class Rounding, int kRows, int kVectors>
HWY_NOINLINE void FinishAnyColumns(const PanelTile& tile, std::int64_t column, std::int64_t used,
                                   Sums<kRows>& sums) {
  const D d;
  const std::int64_t width = kVectors * static_cast<std::int64_t>(hn::Lanes(d));
  HWY_ALIGN float edge[kRows * kVectors * hn::MaxLanes(D())];
  if (tile.addend.floats != nullptr)
    AddColumns<kRows, kVectors>(tile, tile.addend.floats + column, used, sums);
  else if (tile.addend.rounded != nullptr)
    AddColumns<kRows, kVectors>(tile, tile.addend.rounded + column, used, sums);
  const bool done =
      VisitShortAndMove(tile.activation, [&](const auto& f) { sums.template Activate<kVectors>(f); });
  if (tile.rounded != nullptr) {
    if (!done)
      sums.template Activate<kVectors>([&](D tag, V x) { return Activated(tag, x, tile.activation); });
    std::uint16_t* rounded = tile.rounded + column;
    if (used >= width) {
      sums.template StoreRounded<Rounding, kVectors>(rounded, tile.step);
      return;
    }
    HWY_ALIGN std::uint16_t rounded_edge[kRows * kVectors * hn::MaxLanes(D())];
    sums.template StoreRounded<Rounding, kVectors>(rounded_edge, width);
    for (int i = 0; i < kRows; ++i) std::copy_n(rounded_edge + i * width, used, rounded + i * tile.step);
    return;
  }
  float* out = tile.out + column;
  if (used >= width) {
    sums.template Store<kVectors>(out, tile.step);
    if (!done) ActivateRows(d, tile.activation, out, kRows, tile.step, width);
    return;
  }
  sums.template Store<kVectors>(edge, width);
  if (!done) ActivateRows(d, tile.activation, edge, kRows, width, width);
  for (int i = 0; i < kRows; ++i) std::copy_n(edge + i * width, used, out + i * tile.step);
}

// The same. What most tiles ask for is done where the sums are: whole vectors of floats, perhaps an addend
// and one comparison with a bound or two.
template <class Rounding, int kRows, int kVectors>
HWY_INLINE void FinishColumns(const PanelTile& tile, std::int64_t column, std::int64_t used,
                              Sums<kRows>& sums) {
  const auto kind = tile.activation.kind;
  const bool is_short = kind == Activation::kNone || kind == Activation::kRelu || kind == Activation::kClip;
  if (!is_short || tile.activation.moves || tile.rounded != nullptr || tile.addend.rounded != nullptr ||
      used < kVectors * static_cast<std::int64_t>(hn::Lanes(D()))) {
    // A copy, so that the sums themselves have no address and stay in registers.
    Sums<kRows> copy = sums;
    return FinishAnyColumns<Rounding, kRows, kVectors>(tile, column, used, copy);
  }
  if (tile.addend.floats != nullptr) sums.template AddFrom<kVectors>(tile.addend.floats + column, tile.step);
  if (kind == Activation::kRelu)
    sums.template Activate<kVectors>(ReluOfVector());
  else if (kind == Activation::kClip)
    sums.template Activate<kVectors>(ClipOfVector{tile.activation.alpha, tile.activation.beta});
  sums.template Store<kVectors>(tile.out + column, tile.step);
}

// kVectors vectors of columns of a panel from `panel` on, which are the tile's from `column` on; `used` of
// them are wanted, all where that is more.
template <class Way, int kRows, int kVectors>
HWY_NOINLINE void RunColumns(const PanelTile& tile, const typename Way::Unit* panel, std::int64_t of_panel,
                             std::int64_t column, std::int64_t used) {
  Sums<kRows> sums;
  FillWithBias<kRows, kVectors>(tile, column, used, sums);
  // With few rows or one vector, loads are what takes the time.
  constexpr bool kMayFetch = kRows > 3 && kVectors == 2;
  if (kMayFetch && tile.ahead != 0)
    AddSegments<Way, kRows, kVectors, kMayFetch>(tile, panel, of_panel, sums);
  else
    AddSegments<Way, kRows, kVectors, false>(tile, panel, of_panel, sums);
  FinishColumns<typename Way::Rounding, kRows, kVectors>(tile, column, used, sums);
}

// Two whole panels, or the second one in part. Rows are then loaded half as often, and loads are what deep
// products wait for.
template <class Way, int kRows, bool kFetches>
HWY_NOINLINE void RunTwoPanels(const PanelTile& tile, const typename Way::Unit* first,
                               const typename Way::Unit* second, std::int64_t column, std::int64_t used) {
  Sums<kRows> left, right;
  FillWithBias<kRows, 2>(tile, column, kPanelWidth, left);
  FillWithBias<kRows, 2>(tile, column + kPanelWidth, used, right);
  for (std::int64_t s = 0; s < tile.segments; ++s) {
    const float* rows[kRows];
    for (int i = 0; i < kRows; ++i) rows[i] = tile.rows[s * kRows + i];
    for (std::int64_t k = 0; k < tile.depth; ++k) {
      if constexpr (kFetches) {
        __builtin_prefetch(first + tile.ahead, 0, 2);
        __builtin_prefetch(first + tile.ahead + kLine<Way>, 0, 2);
      }
      AddWideStep<Way, kRows>(rows, k, first, second, left, right);
      first += kPanelWidth;
      second += kPanelWidth;
    }
  }
  FinishColumns<typename Way::Rounding, kRows, 2>(tile, column, kPanelWidth, left);
  FinishColumns<typename Way::Rounding, kRows, 2>(tile, column + kPanelWidth, used, right);
}

// A row by a panel takes a tenth of a microsecond, so little may be done between panels.
template <class Way, int kRows>
void RunRows(const PanelTile& tile) {
  using Unit = typename Way::Unit;
  const D d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t panels = PanelCount(tile.columns);
  const auto* const panels_begin = reinterpret_cast<const Unit*>(tile.panel);
  const std::int64_t size =
      (tile.panel_depth != 0 ? tile.panel_depth : tile.segments * tile.depth) * kPanelWidth;
  if constexpr (kRows > 3 && kRows <= kWideRows) {
    if (tile.wide && WidthOfPanel(panels - 1, tile.columns) == kPanelWidth) {
      const auto run = tile.ahead != 0 ? &RunTwoPanels<Way, kRows, true> : &RunTwoPanels<Way, kRows, false>;
      const Unit* panel = panels_begin + tile.skipped * kPanelWidth;
      return run(tile, panel, panel + size, 0, UsedOfPanel(1, tile.columns));
    }
  }
  for (std::int64_t i = 0; i < panels; ++i) {
    const std::int64_t at = tile.backward ? panels - 1 - i : i;
    const std::int64_t width = WidthOfPanel(at, tile.columns), used = UsedOfPanel(at, tile.columns);
    const Unit* panel = panels_begin + at * size + tile.skipped * width;
    const std::int64_t first = at * kPanelWidth;
    // Products without terms have no panel, not even memory that a pointer may move in.
    const auto from_column = [&](std::int64_t from) { return size == 0 ? panel : panel + from; };
    std::int64_t from = 0;
    for (; from + 2 * lanes <= width && from + lanes < used; from += 2 * lanes)
      RunColumns<Way, kRows, 2>(tile, from_column(from), width, first + from, used - from);
    if (from < used) RunColumns<Way, kRows, 1>(tile, from_column(from), width, first + from, used - from);
  }
}

template <class Way, int kRows = kMostRows>
void RunPanel(const PanelTile& tile) {
  if (tile.count == kRows) return RunRows<Way, kRows>(tile);
  if constexpr (kRows > 1) RunPanel<Way, kRows - 1>(tile);
}

template <class Way>
PanelKernel KernelOf() {
  return {kMostRows, kWideRows, &RunPanel<Way>};
}

PanelKernel PanelsOfTarget() { return KernelOf<FloatUnits>(); }
PanelKernel HalfPanelsOfTarget() { return KernelOf<HalfUnits>(); }

PanelKernel PairPanelsOfTarget([[maybe_unused]] bool any_instruction) {
#if HWY_TARGET == HWY_AVX3
  if (any_instruction && HasBf16Instructions()) return KernelOf<PairInstruction>();
#endif
  return KernelOf<WidenedPairs>();
}

}  // namespace rewire::kernel::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rewire::kernel::cpu {

HWY_EXPORT(PanelsOfTarget);
HWY_EXPORT(HalfPanelsOfTarget);
HWY_EXPORT(PairPanelsOfTarget);

PanelKernel ChoosePanelKernel() { return HWY_DYNAMIC_DISPATCH(PanelsOfTarget)(); }

PanelKernel ChooseHalfPanelKernel() { return HWY_DYNAMIC_DISPATCH(HalfPanelsOfTarget)(); }

PanelKernel ChoosePairPanelKernel(bool any_instruction) {
  return HWY_DYNAMIC_DISPATCH(PairPanelsOfTarget)(any_instruction);
}

const PanelKernel& BestPanelKernel(PanelUnit unit) {
  static const PanelKernel kKernels[] = {ChoosePanelKernel(), ChoosePairPanelKernel(true),
                                         ChooseHalfPanelKernel()};
  return kKernels[static_cast<int>(unit)];
}

}  // namespace rewire::kernel::cpu
#endif
