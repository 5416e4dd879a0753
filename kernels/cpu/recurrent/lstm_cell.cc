// SPDX-License-Identifier: Apache-2.0
// Compiled once for each instruction set; see Highway's foreach_target.h.
#include "rewire/kernels/cpu/recurrent/lstm_cell.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "rewire/kernels/cpu/recurrent/lstm_cell.cc"
#include <hwy/foreach_target.h>
// Behind it.
#include "rewire/kernels/cpu/math/vector_functions-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rewire::kernel::cpu::HWY_NAMESPACE {

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

// 1 + exp(-x), by which sigmoid(x) divides 1; finite, since another divisor is multiplied to it.
HWY_INLINE V SigmoidDivisor(V x) {
  const D d;
  return hn::Add(ExpOfModerate(d, Held(d, hn::Neg(x), 60.0f)), hn::Set(d, 1.0f));
}

// Divisions are what takes longest: products of fractions take one.
HWY_INLINE void Advance(V in, V out, V forget, V candidate, V* cell, V* state) {
  const D d;
  V divisor;
  const V dividend = TanhFraction(d, candidate, &divisor);
  const V taken = hn::Div(dividend, hn::Mul(SigmoidDivisor(in), divisor));
  *cell = hn::Add(hn::Div(*cell, SigmoidDivisor(forget)), taken);
  const V shown = TanhFraction(d, *cell, &divisor);
  *state = hn::Div(shown, hn::Mul(SigmoidDivisor(out), divisor));
}

void AdvanceUnits(const LstmUnits& units) {
  const D d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto gate = [&](std::int64_t k, std::int64_t i) {
    const std::int64_t at = k * units.gate_step + i;
    return hn::Add(hn::LoadU(d, units.products + at), hn::LoadU(d, units.more + at));
  };
  std::int64_t i = 0;
  for (; i + lanes <= units.count; i += lanes) {
    V cell = hn::LoadU(d, units.cell + i), state;
    Advance(gate(0, i), gate(1, i), gate(2, i), gate(3, i), &cell, &state);
    hn::StoreU(cell, d, units.cell + i);
    hn::StoreU(state, d, units.state + i);
  }
  if (i == units.count) return;
  // The last ones, filled up to a vector.
  HWY_ALIGN float rest[6][hn::MaxLanes(D())] = {};
  for (std::int64_t j = i; j < units.count; ++j) {
    for (std::int64_t k = 0; k < 4; ++k)
      rest[k][j - i] = units.products[k * units.gate_step + j] + units.more[k * units.gate_step + j];
    rest[4][j - i] = units.cell[j];
  }
  V cell = hn::Load(d, rest[4]), state;
  Advance(hn::Load(d, rest[0]), hn::Load(d, rest[1]), hn::Load(d, rest[2]), hn::Load(d, rest[3]), &cell,
          &state);
  hn::Store(cell, d, rest[4]);
  hn::Store(state, d, rest[5]);
  std::copy_n(rest[4], units.count - i, units.cell + i);
  std::copy_n(rest[5], units.count - i, units.state + i);
}

LstmCell CellOfTarget() { return &AdvanceUnits; }

}  // namespace rewire::kernel::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rewire::kernel::cpu {

HWY_EXPORT(CellOfTarget);

LstmCell ChooseLstmCell() { return HWY_DYNAMIC_DISPATCH(CellOfTarget)(); }

LstmCell BestLstmCell() {
  static const LstmCell kBest = ChooseLstmCell();
  return kBest;
}

}  // namespace rewire::kernel::cpu
#endif
