// SPDX-License-Identifier: Apache-2.0
// Compiled once for each instruction set; see Highway's foreach_target.h.
#include "rewire/kernels/cpu/product/tiles/tile_finish.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "rewire/kernels/cpu/product/tiles/tile_finish.cc"
#include <hwy/foreach_target.h>
// Behind it.
#include "rewire/kernels/cpu/elementwise/activated-inl.h"
#include "rewire/kernels/cpu/elementwise/rough_activated-inl.h"
#include "rewire/kernels/cpu/math/bf16-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rewire::kernel::cpu::HWY_NAMESPACE {

using FinishTag = hn::CappedTag<float, kHalfPanel>;
using FinishVector = hn::Vec<FinishTag>;

// The first `count` of a vector's elements, which may be all or none. Others are neither read nor written.
class FirstElements {
 public:
  explicit FirstElements(std::int64_t count)
      : count_(std::clamp<std::int64_t>(count, 0, static_cast<std::int64_t>(hn::Lanes(FinishTag())))) {
#if HWY_TARGET == HWY_AVX3
    floats_ = hn::FirstN(FinishTag(), static_cast<std::size_t>(count_));
    bf16_ = hn::FirstN(Bf16Tag(), static_cast<std::size_t>(count_));
#endif
  }

  HWY_INLINE FinishVector Load(const float* from) const {
#if HWY_TARGET == HWY_AVX3
    return hn::MaskedLoad(floats_, FinishTag(), from);
#else
    HWY_ALIGN float all[hn::MaxLanes(FinishTag())] = {};
    std::copy_n(from, count_, all);
    return hn::Load(FinishTag(), all);
#endif
  }
  HWY_INLINE FinishVector Load(const std::uint16_t* from) const {
#if HWY_TARGET == HWY_AVX3
    return WidenedBf16(FinishTag(), hn::MaskedLoad(bf16_, Bf16Tag(), from));
#else
    HWY_ALIGN std::uint16_t all[hn::MaxLanes(FinishTag())] = {};
    std::copy_n(from, count_, all);
    return LoadFloats(FinishTag(), all);
#endif
  }
  HWY_INLINE void Store(FinishVector value, float* to) const {
#if HWY_TARGET == HWY_AVX3
    hn::BlendedStore(value, floats_, FinishTag(), to);
#else
    HWY_ALIGN float all[hn::MaxLanes(FinishTag())];
    hn::Store(value, FinishTag(), all);
    std::copy_n(all, count_, to);
#endif
  }
  template <class Rounding>
  HWY_INLINE void StoreRounded(FinishVector value, std::uint16_t* to) const {
#if HWY_TARGET == HWY_AVX3
    hn::BlendedStore(Rounding::Round(FinishTag(), value), bf16_, Bf16Tag(), to);
#else
    HWY_ALIGN std::uint16_t all[hn::MaxLanes(FinishTag())];
    Rounding::Store(FinishTag(), value, all);
    std::copy_n(all, count_, to);
#endif
  }

 private:
  using Bf16Tag = hn::Rebind<std::uint16_t, FinishTag>;
  std::int64_t count_;
#if HWY_TARGET == HWY_AVX3
  hn::Mask<FinishTag> floats_;
  hn::Mask<Bf16Tag> bf16_;
#endif
};

// How the vectors of a row are rounded and written: those of `columns` columns, as many as there are.
template <class Rounding, int kVectors>
class RoundedRow {
 public:
  explicit RoundedRow(std::int64_t columns) : first_(columns), second_(columns - Lanes()) {}

  HWY_INLINE void Store(const FinishVector (&values)[kVectors], std::uint16_t* to) const {
    first_.template StoreRounded<Rounding>(values[0], to);
    if constexpr (kVectors == 2) second_.template StoreRounded<Rounding>(values[1], to + Lanes());
  }

 private:
  static std::int64_t Lanes() { return static_cast<std::int64_t>(hn::Lanes(FinishTag())); }
  FirstElements first_, second_;
};

#if HWY_TARGET == HWY_AVX3

// Two vectors in one instruction, and one write.
template <>
class RoundedRow<Bf16ByInstruction, 2> {
 public:
  explicit RoundedRow(std::int64_t columns) : used_(hn::FirstN(Tag(), static_cast<std::size_t>(columns))) {}

  HWY_INLINE void Store(const FinishVector (&values)[2], std::uint16_t* to) const {
    auto rounded = hn::Zero(Tag());
    asm("vcvtne2ps2bf16 %1, %2, %0" : "=v"(rounded.raw) : "v"(values[0].raw), "v"(values[1].raw));
    hn::BlendedStore(rounded, used_, Tag(), to);
  }

 private:
  using Tag = hn::CappedTag<std::uint16_t, kPanelWidth>;
  hn::Mask<Tag> used_;
};

#endif

// kVectors vectors of columns from `column` on of all rows. The function is compiled into the loop, so that
// its constants stay in registers and rows do not wait for each other.
template <class Rounding, int kVectors, class F>
HWY_NOINLINE void FinishColumns(const PanelTile& tile, const float* sums, std::int64_t column, const F& f) {
  const FinishTag d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const FirstElements first(tile.columns - column), second(tile.columns - column - lanes);
  const FirstElements* const used[] = {&first, &second};
  FinishVector bias[kVectors];
  for (int v = 0; v < kVectors; ++v)
    bias[v] = tile.bias == nullptr ? hn::Zero(d) : used[v]->Load(tile.bias + column + v * lanes);
  const RoundedRow<Rounding, kVectors> rounded(tile.columns - column);
  const MoveOfVector move = MoveOf(tile.activation);
  const bool moves = tile.activation.moves;
  for (std::int64_t i = 0, at = column; i < tile.count; ++i, at += tile.step) {
    FinishVector values[kVectors];
    for (int v = 0; v < kVectors; ++v) {
      const std::int64_t to = at + v * lanes;
      FinishVector value = hn::Add(bias[v], hn::LoadU(d, sums + i * kPanelWidth + column + v * lanes));
      if (tile.addend.rounded != nullptr)
        value = hn::Add(value, used[v]->Load(tile.addend.rounded + to));
      else if (tile.addend.floats != nullptr)
        value = hn::Add(value, used[v]->Load(tile.addend.floats + to));
      value = f(d, value);
      values[v] = moves ? move(d, value) : value;
    }
    if (tile.rounded != nullptr) {
      rounded.Store(values, tile.rounded + at);
      continue;
    }
    for (int v = 0; v < kVectors; ++v) used[v]->Store(values[v], tile.out + at + v * lanes);
  }
}

// Calls visit(f) with the activation's function, roughly where the result is rounded.
template <class Visit>
HWY_INLINE void VisitRough(const Activation& activation, const Visit& visit) {
  switch (activation.kind) {
    case Activation::kSigmoid:
      return visit(RoughSigmoidOfVector());
    case Activation::kSwish:
      return visit(RoughSwishOfVector());
    case Activation::kGelu:
      return visit(RoughGeluOfVector());
    default:
      VisitFunction(activation, visit);
  }
}

template <class Rounding>
void FinishTile(const PanelTile& tile, const float* sums) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(FinishTag()));
  const auto finish = [&](const auto& f) {
    std::int64_t column = 0;
    for (; column + lanes < tile.columns; column += 2 * lanes)
      FinishColumns<Rounding, 2>(tile, sums, column, f);
    if (column < tile.columns) FinishColumns<Rounding, 1>(tile, sums, column, f);
  };
  tile.rounded != nullptr ? VisitRough(tile.activation, finish) : VisitFunction(tile.activation, finish);
}

TileFinishKernel TileFinishOfTarget([[maybe_unused]] bool any_instruction) {
#if HWY_TARGET == HWY_AVX3
  if (any_instruction && HasBf16Instructions()) return &FinishTile<Bf16ByInstruction>;
#endif
  return &FinishTile<Bf16ByBits>;
}

}  // namespace rewire::kernel::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rewire::kernel::cpu {

HWY_EXPORT(TileFinishOfTarget);

TileFinishKernel ChooseTileFinishKernel(bool any_instruction) {
  return HWY_DYNAMIC_DISPATCH(TileFinishOfTarget)(any_instruction);
}

TileFinishKernel BestTileFinishKernel() {
  static const TileFinishKernel kBest = ChooseTileFinishKernel(true);
  return kBest;
}

}  // namespace rewire::kernel::cpu
#endif
