// SPDX-License-Identifier: Apache-2.0
// Compiled once for each instruction set; see Highway's foreach_target.h.
#include "rewire/kernels/cpu/convolution/largest_rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "rewire/kernels/cpu/convolution/largest_rows.cc"
#include <hwy/foreach_target.h>
// Behind it.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace rewire::kernel::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// The larger, or NaN.
template <class V>
HWY_INLINE V LargerOf(V x, V most) {
  return hn::IfThenElse(hn::Or(hn::Gt(x, most), hn::IsNaN(x)), x, most);
}

// kVectors vectors from element `c` on, side by side, since each has to wait for the one before.
template <int kVectors, class D>
HWY_INLINE void LargestAt(D d, const float* const* rows, std::int64_t count, std::int64_t c, float* out) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  auto first = hn::Neg(hn::Inf(d)), second = first;
  for (std::int64_t i = 0; i < count; ++i) {
    first = LargerOf(hn::LoadU(d, rows[i] + c), first);
    if constexpr (kVectors == 2) second = LargerOf(hn::LoadU(d, rows[i] + c + lanes), second);
  }
  hn::StoreU(first, d, out + c);
  if constexpr (kVectors == 2) hn::StoreU(second, d, out + c + lanes);
}

template <class D>
HWY_INLINE void LargestFrom(D d, const float* const* rows, std::int64_t count, std::int64_t channels,
                            std::int64_t c, float* out) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (; c + 2 * lanes <= channels; c += 2 * lanes) LargestAt<2>(d, rows, count, c, out);
  for (; c + lanes <= channels; c += lanes) LargestAt<1>(d, rows, count, c, out);
  if (c == channels) return;
  if (channels >= lanes) {
    // The last vector overlaps the one before it.
    LargestAt<1>(d, rows, count, channels - lanes, out);
  } else if constexpr (hn::MaxLanes(D()) > 1) {
    LargestFrom(hn::CappedTag<float, hn::MaxLanes(D()) / 2>(), rows, count, channels, c, out);
  }
}

void LargestRows(const float* const* rows, std::int64_t count, std::int64_t channels, float* out) {
  LargestFrom(hn::ScalableTag<float>(), rows, count, channels, 0, out);
}

LargestRowsKernel LargestRowsOfTarget() { return &LargestRows; }

}  // namespace rewire::kernel::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rewire::kernel::cpu {

HWY_EXPORT(LargestRowsOfTarget);

LargestRowsKernel ChooseLargestRowsKernel() { return HWY_DYNAMIC_DISPATCH(LargestRowsOfTarget)(); }

LargestRowsKernel BestLargestRowsKernel() {
  static const LargestRowsKernel kBest = ChooseLargestRowsKernel();
  return kBest;
}

}  // namespace rewire::kernel::cpu
#endif
