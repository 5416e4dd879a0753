// SPDX-License-Identifier: Apache-2.0
// Compiled once for each instruction set; see Highway's foreach_target.h.
#include "rewire/kernels/cpu/recurrent/unit_cells.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "rewire/kernels/cpu/recurrent/unit_cells.cc"
#include <hwy/foreach_target.h>
// Behind it.
#include "rewire/kernels/cpu/math/vector_functions-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rewire::kernel::cpu::HWY_NAMESPACE {

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

// The divisor of Sigmoid in kernels/contract/scalar_functions.h, 1 + exp(-x), by which a gate divides what it
// lets through. It is infinite where sigmoid(x) is 0, so that an infinity behind a closed gate is NaN, as
// 0 * infinity is.
HWY_INLINE V SigmoidDivisor(V x) {
  const D d;
  return hn::Add(hn::Set(d, 1.0f), ExpOf(d, hn::Neg(x)));
}

V Sum(const RecurrentUnits& units, std::int64_t gate, std::int64_t i) {
  const D d;
  const std::int64_t at = gate * units.gate_step + i;
  return hn::Add(hn::LoadU(d, units.products + at), hn::LoadU(d, units.more + at));
}

// A cell brings a vector of units forward, those from i on. Divisions are what takes longest: products of
// fractions take one.
struct Lstm {
  static constexpr std::int64_t kGates = 4;
  static HWY_INLINE void Advance(const RecurrentUnits& units, std::int64_t i) {
    const D d;
    V divisor;
    const V dividend = TanhFraction(d, Sum(units, 3, i), &divisor), before = hn::LoadU(d, units.cell + i);
    const V taken = hn::Div(dividend, hn::Mul(SigmoidDivisor(Seen(units, 0, i, before)), divisor));
    const V kept = hn::Div(before, SigmoidDivisor(Seen(units, 2, i, before)));
    const V cell = hn::Add(kept, taken);
    const V shown = TanhFraction(d, cell, &divisor);
    hn::StoreU(cell, d, units.cell + i);
    hn::StoreU(hn::Div(shown, hn::Mul(SigmoidDivisor(Seen(units, 1, i, cell)), divisor)), d, units.next + i);
  }

 private:
  // A gate's sum, to which a peephole adds what it sees of the cell.
  static HWY_INLINE V Seen(const RecurrentUnits& units, std::int64_t gate, std::int64_t i, V cell) {
    const V sum = Sum(units, gate, i);
    if (units.peepholes == nullptr) return sum;
    return hn::MulAdd(hn::LoadU(D(), units.peepholes + gate * units.gate_step + i), cell, sum);
  }
};

struct Gru {
  static constexpr std::int64_t kGates = 3;
  static HWY_INLINE void Advance(const RecurrentUnits& units, std::int64_t i) {
    const D d;
    const std::int64_t at = 2 * units.gate_step + i;
    const V let_through = hn::Div(hn::LoadU(d, units.products + at), SigmoidDivisor(Sum(units, 1, i)));
    V divisor;
    const V dividend = TanhFraction(d, hn::Add(hn::LoadU(d, units.more + at), let_through), &divisor);
    const V h = hn::Div(dividend, divisor);
    const V change = hn::Sub(hn::LoadU(d, units.state + i), h);
    hn::StoreU(hn::Add(h, hn::Div(change, SigmoidDivisor(Sum(units, 0, i)))), d, units.next + i);
  }
};

template <typename Cell>
void AdvanceUnits(const RecurrentUnits& units) {
  const D d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= units.count; i += lanes) Cell::Advance(units, i);
  const std::int64_t left = units.count - i;
  if (left == 0) return;
  // The last ones, filled up to a vector.
  constexpr std::int64_t kMost = hn::MaxLanes(D());
  HWY_ALIGN float products[Cell::kGates * kMost] = {}, more[Cell::kGates * kMost] = {};
  HWY_ALIGN float cell[kMost] = {}, state[kMost] = {}, peepholes[3 * kMost] = {};
  for (std::int64_t gate = 0; gate < Cell::kGates; ++gate) {
    std::copy_n(units.products + gate * units.gate_step + i, left, products + gate * kMost);
    std::copy_n(units.more + gate * units.gate_step + i, left, more + gate * kMost);
  }
  if (units.cell != nullptr) std::copy_n(units.cell + i, left, cell);
  if (units.state != nullptr) std::copy_n(units.state + i, left, state);
  for (std::int64_t gate = 0; units.peepholes != nullptr && gate < 3; ++gate)
    std::copy_n(units.peepholes + gate * units.gate_step + i, left, peepholes + gate * kMost);
  Cell::Advance(
      {products, more, kMost, left, cell, state, state, units.peepholes == nullptr ? nullptr : peepholes}, 0);
  if (units.cell != nullptr) std::copy_n(cell, left, units.cell + i);
  std::copy_n(state, left, units.next + i);
}

RecurrentCells CellsOfTarget() { return {&AdvanceUnits<Lstm>, &AdvanceUnits<Gru>}; }

}  // namespace rewire::kernel::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rewire::kernel::cpu {

HWY_EXPORT(CellsOfTarget);

RecurrentCells ChooseRecurrentCells() { return HWY_DYNAMIC_DISPATCH(CellsOfTarget)(); }

const RecurrentCells& BestRecurrentCells() {
  static const RecurrentCells kBest = ChooseRecurrentCells();
  return kBest;
}

}  // namespace rewire::kernel::cpu
#endif
