// SPDX-License-Identifier: Apache-2.0
// Compiled once for each instruction set; see Highway's foreach_target.h.
#include "rewire/kernels/cpu/convolution/largest_windows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "rewire/kernels/cpu/convolution/largest_windows.cc"
#include <hwy/foreach_target.h>
// Behind it.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace rewire::kernel::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Windows of kRows rows of kTaps taps; 0 stands for any number.
template <int kRows, int kTaps>
struct WindowSize {
  static HWY_INLINE std::int64_t Rows(const WindowsInRow& windows) {
    return kRows == 0 ? windows.row_count : kRows;
  }
  static HWY_INLINE std::int64_t Taps(const WindowsInRow& windows) {
    return kTaps == 0 ? windows.taps : kTaps;
  }
};

// visit(vector) for each element of the window that begins at offset `from` of the rows.
template <class Size, class D, class Visit>
HWY_INLINE void ForEachUnder(D d, const WindowsInRow& windows, std::int64_t from, const Visit& visit) {
  for (std::int64_t r = 0; r < Size::Rows(windows); ++r) {
    const float* x = windows.rows[r] + from;
    for (std::int64_t t = 0; t < Size::Taps(windows); ++t) visit(hn::LoadU(d, x + t * windows.distance));
  }
}

// The largest, or the last NaN.
template <class D>
HWY_NOINLINE void LargestWithNaN(D d, const WindowsInRow& windows, std::int64_t from, float* out) {
  auto most = hn::Neg(hn::Inf(d));
  ForEachUnder<WindowSize<0, 0>>(d, windows, from, [&](auto x) {
    most = hn::IfThenElse(hn::Or(hn::Gt(x, most), hn::IsNaN(x)), x, most);
  });
  hn::StoreU(most, d, out);
}

// The sum is NaN if an element is. Infinities of both signs make it NaN too, which LargestWithNaN then looks
// into.
template <class Size, class D>
HWY_INLINE void LargestAt(D d, const WindowsInRow& windows, std::int64_t from, float* out) {
  auto most = hn::Neg(hn::Inf(d));
  auto sum = hn::Zero(d);
  ForEachUnder<Size>(d, windows, from, [&](auto x) {
    most = hn::Max(x, most);
    sum = hn::Add(sum, x);
  });
  hn::StoreU(most, d, out);
  if (HWY_UNLIKELY(!hn::AllFalse(d, hn::IsNaN(sum)))) LargestWithNaN(d, windows, from, out);
}

// There are at least as many channels as lanes. The last vector overlaps the one before it.
template <class Size, class D>
HWY_NOINLINE void LargestOfSize(D d, const WindowsInRow& windows) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t channels = windows.channels;
  float* out = windows.out;
  for (std::int64_t o = 0, from = 0; o < windows.count; ++o, from += windows.stride, out += channels) {
    std::int64_t c = 0;
    for (; c + lanes <= channels; c += lanes) LargestAt<Size>(d, windows, from + c, out + c);
    if (c < channels) LargestAt<Size>(d, windows, from + channels - lanes, out + channels - lanes);
  }
}

// Rows of few channels take narrower vectors.
template <class D>
void LargestBy(D d, const WindowsInRow& windows) {
  if constexpr (hn::MaxLanes(D()) > 1) {
    if (windows.channels < static_cast<std::int64_t>(hn::Lanes(d)))
      return LargestBy(hn::CappedTag<float, hn::MaxLanes(D()) / 2>(), windows);
  }
  if (windows.row_count == 2 && windows.taps == 2) return LargestOfSize<WindowSize<2, 2>>(d, windows);
  if (windows.row_count == 3 && windows.taps == 3) return LargestOfSize<WindowSize<3, 3>>(d, windows);
  LargestOfSize<WindowSize<0, 0>>(d, windows);
}

void LargestWindows(const WindowsInRow& windows) { LargestBy(hn::ScalableTag<float>(), windows); }

LargestWindowsKernel LargestWindowsOfTarget() { return &LargestWindows; }

}  // namespace rewire::kernel::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rewire::kernel::cpu {

HWY_EXPORT(LargestWindowsOfTarget);

LargestWindowsKernel ChooseLargestWindowsKernel() { return HWY_DYNAMIC_DISPATCH(LargestWindowsOfTarget)(); }

LargestWindowsKernel BestLargestWindowsKernel() {
  static const LargestWindowsKernel kBest = ChooseLargestWindowsKernel();
  return kBest;
}

}  // namespace rewire::kernel::cpu
#endif
