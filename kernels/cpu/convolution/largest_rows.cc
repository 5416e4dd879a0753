// SPDX-License-Identifier: Apache-2.0
// Compiled once for each instruction set; see Highway's foreach_target.h.
#include "rewire/kernels/cpu/convolution/largest_rows.h"

#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "rewire/kernels/cpu/convolution/largest_rows.cc"
#include <hwy/foreach_target.h>
// Behind it.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace rewire::kernel::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// The larger, or NaN.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V LargerOf(D, V x, V most) {
  if constexpr (hwy::IsFloat<hn::TFromD<D>>())
    return hn::IfThenElse(hn::Or(hn::Gt(x, most), hn::IsNaN(x)), x, most);
  else
    return hn::Max(x, most);
}

template <class D, typename T = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> Lowest(D d) {
  if constexpr (hwy::IsFloat<T>())
    return hn::Neg(hn::Inf(d));
  else
    return hn::Set(d, std::numeric_limits<T>::min());
}

// kVectors vectors from element `c` on, side by side, since each has to wait for the one before.
template <int kVectors, class D, typename T = hn::TFromD<D>>
HWY_INLINE void LargestAt(D d, const T* const* rows, std::int64_t count, std::int64_t c, T* out) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  auto first = Lowest(d), second = first;
  for (std::int64_t i = 0; i < count; ++i) {
    first = LargerOf(d, hn::LoadU(d, rows[i] + c), first);
    if constexpr (kVectors == 2) second = LargerOf(d, hn::LoadU(d, rows[i] + c + lanes), second);
  }
  hn::StoreU(first, d, out + c);
  if constexpr (kVectors == 2) hn::StoreU(second, d, out + c + lanes);
}

template <class D, typename T = hn::TFromD<D>>
HWY_INLINE void LargestFrom(D d, const T* const* rows, std::int64_t count, std::int64_t channels,
                            std::int64_t c, T* out) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (; c + 2 * lanes <= channels; c += 2 * lanes) LargestAt<2>(d, rows, count, c, out);
  for (; c + lanes <= channels; c += lanes) LargestAt<1>(d, rows, count, c, out);
  if (c == channels) return;
  if (channels >= lanes) {
    // The last vector overlaps the one before it.
    LargestAt<1>(d, rows, count, channels - lanes, out);
  } else if constexpr (hn::MaxLanes(D()) > 1) {
    LargestFrom(hn::CappedTag<T, hn::MaxLanes(D()) / 2>(), rows, count, channels, c, out);
  }
}

template <typename T>
void LargestRows(const T* const* rows, std::int64_t count, std::int64_t channels, T* out) {
  LargestFrom(hn::ScalableTag<T>(), rows, count, channels, 0, out);
}

LargestRowsKernel<float> LargestFloats() { return &LargestRows; }
LargestRowsKernel<std::uint8_t> LargestUnsigned() { return &LargestRows; }
LargestRowsKernel<std::int8_t> LargestSigned() { return &LargestRows; }

}  // namespace rewire::kernel::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rewire::kernel::cpu {

HWY_EXPORT(LargestFloats);
HWY_EXPORT(LargestUnsigned);
HWY_EXPORT(LargestSigned);

template <>
LargestRowsKernel<float> ChooseLargestRowsKernel<float>() {
  return HWY_DYNAMIC_DISPATCH(LargestFloats)();
}
template <>
LargestRowsKernel<std::uint8_t> ChooseLargestRowsKernel<std::uint8_t>() {
  return HWY_DYNAMIC_DISPATCH(LargestUnsigned)();
}
template <>
LargestRowsKernel<std::int8_t> ChooseLargestRowsKernel<std::int8_t>() {
  return HWY_DYNAMIC_DISPATCH(LargestSigned)();
}

}  // namespace rewire::kernel::cpu
#endif
