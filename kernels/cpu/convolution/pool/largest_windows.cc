// SPDX-License-Identifier: Apache-2.0
// Compiled once for each instruction set; see Highway's foreach_target.h.
#include "rewire/kernels/cpu/convolution/pool/largest_windows.h"

#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "rewire/kernels/cpu/convolution/pool/largest_windows.cc"
#include <hwy/foreach_target.h>
// Behind it.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace rewire::kernel::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Windows of kRows rows of kTaps taps; 0 stands for any number.
template <int kRows, int kTaps>
struct WindowSize {
  template <typename T>
  static HWY_INLINE std::int64_t Rows(const WindowsInRow<T>& windows) {
    return kRows == 0 ? windows.row_count : kRows;
  }
  template <typename T>
  static HWY_INLINE std::int64_t Taps(const WindowsInRow<T>& windows) {
    return kTaps == 0 ? windows.taps : kTaps;
  }
};

// visit(vector) for each element of the window that begins at offset `from` of the rows.
template <class Size, class D, class Visit, typename T = hn::TFromD<D>>
HWY_INLINE void ForEachUnder(D d, const WindowsInRow<T>& windows, std::int64_t from, const Visit& visit) {
  for (std::int64_t r = 0; r < Size::Rows(windows); ++r) {
    const T* x = windows.rows[r] + from;
    for (std::int64_t t = 0; t < Size::Taps(windows); ++t) visit(hn::LoadU(d, x + t * windows.distance));
  }
}

// The bits of bf16 as integers of the same order, and back: of negative numbers all but the sign are turned.
// NaN, which have no order, are further from 0 than infinities.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Ordered(D d, V bits) {
  const hn::RebindToSigned<D> i;
  const auto sign = hn::BitCast(d, hn::ShiftRight<15>(hn::BitCast(i, bits)));
  return hn::Xor(bits, hn::And(sign, hn::Set(d, 0x7FFF)));
}

template <class D>
HWY_NOINLINE void LargestWithNaN(D d, const WindowsInRow<std::uint16_t>& windows, std::int64_t from,
                                 std::uint16_t* out) {
  const hn::RebindToSigned<D> i;
  const auto magnitude = hn::Set(d, 0x7FFF);
  auto most = hn::Set(d, 0xFF80);
  ForEachUnder<WindowSize<0, 0>>(d, windows, from, [&](auto x) {
    const auto is_nan = hn::RebindMask(d, hn::Gt(hn::BitCast(i, hn::And(x, magnitude)), hn::Set(i, 0x7F80)));
    const auto greater =
        hn::RebindMask(d, hn::Gt(hn::BitCast(i, Ordered(d, x)), hn::BitCast(i, Ordered(d, most))));
    // The largest before it may be NaN, too.
    const auto was_nan =
        hn::RebindMask(d, hn::Gt(hn::BitCast(i, hn::And(most, magnitude)), hn::Set(i, 0x7F80)));
    most = hn::IfThenElse(hn::Or(hn::AndNot(was_nan, greater), is_nan), x, most);
  });
  hn::StoreU(most, d, out);
}

// The largest of bf16.
template <class Size, class D>
HWY_INLINE void LargestBf16At(D d, const WindowsInRow<std::uint16_t>& windows, std::int64_t from,
                              std::uint16_t* out) {
  const hn::RebindToSigned<D> i;
  const auto magnitude = hn::Set(d, 0x7FFF);
  auto most = hn::BitCast(i, Ordered(d, hn::Set(d, 0xFF80))), farthest = hn::Zero(i);
  ForEachUnder<Size>(d, windows, from, [&](auto x) {
    most = hn::Max(hn::BitCast(i, Ordered(d, x)), most);
    farthest = hn::Max(hn::BitCast(i, hn::And(x, magnitude)), farthest);
  });
  hn::StoreU(Ordered(d, hn::BitCast(d, most)), d, out);
  if (HWY_UNLIKELY(!hn::AllFalse(i, hn::Gt(farthest, hn::Set(i, 0x7F80)))))
    LargestWithNaN(d, windows, from, out);
}

// The largest, or the last NaN.
template <class D>
HWY_NOINLINE void LargestWithNaN(D d, const WindowsInRow<float>& windows, std::int64_t from, float* out) {
  auto most = hn::Neg(hn::Inf(d));
  ForEachUnder<WindowSize<0, 0>>(d, windows, from, [&](auto x) {
    most = hn::IfThenElse(hn::Or(hn::Gt(x, most), hn::IsNaN(x)), x, most);
  });
  hn::StoreU(most, d, out);
}

template <class D, typename T = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> LeastOf(D d) {
  if constexpr (hwy::IsFloat<T>())
    return hn::Neg(hn::Inf(d));
  else
    return hn::Set(d, std::numeric_limits<T>::min());
}

// The sum of floats is NaN if an element is. Infinities of both signs make it NaN too, which LargestWithNaN
// then looks into.
template <class Size, class D, typename T = hn::TFromD<D>>
HWY_INLINE void LargestAt(D d, const WindowsInRow<T>& windows, std::int64_t from, T* out) {
  if constexpr (sizeof(T) == 2) return LargestBf16At<Size>(d, windows, from, out);
  auto most = LeastOf(d);
  if constexpr (hwy::IsFloat<T>()) {
    auto sum = hn::Zero(d);
    ForEachUnder<Size>(d, windows, from, [&](auto x) {
      most = hn::Max(x, most);
      sum = hn::Add(sum, x);
    });
    hn::StoreU(most, d, out);
    if (HWY_UNLIKELY(!hn::AllFalse(d, hn::IsNaN(sum)))) LargestWithNaN(d, windows, from, out);
  } else {
    ForEachUnder<Size>(d, windows, from, [&](auto x) { most = hn::Max(x, most); });
    hn::StoreU(most, d, out);
  }
}

template <class Size, class D, typename T = hn::TFromD<D>>
HWY_INLINE void MeanAt(D d, const WindowsInRow<T>& windows, std::int64_t from, T* out) {
  auto sum = hn::Zero(d);
  ForEachUnder<Size>(d, windows, from, [&](auto x) { sum = hn::Add(sum, x); });
  hn::StoreU(windows.divisor == 0 ? hn::Zero(d) : hn::Div(sum, hn::Set(d, windows.divisor)), d, out);
}

template <bool kMeans, class Size, class D, typename T = hn::TFromD<D>>
HWY_INLINE void ResultAt(D d, const WindowsInRow<T>& windows, std::int64_t from, T* out) {
  if constexpr (kMeans)
    MeanAt<Size>(d, windows, from, out);
  else
    LargestAt<Size>(d, windows, from, out);
}

// There are at least as many channels as lanes. The last vector overlaps the one before it.
template <bool kMeans, class Size, class D, typename T = hn::TFromD<D>>
HWY_NOINLINE void ResultsOfSize(D d, const WindowsInRow<T>& windows) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t channels = windows.channels;
  T* out = windows.out;
  for (std::int64_t o = 0, from = 0; o < windows.count; ++o, from += windows.stride, out += channels) {
    std::int64_t c = 0;
    for (; c + lanes <= channels; c += lanes) ResultAt<kMeans, Size>(d, windows, from + c, out + c);
    if (c < channels) ResultAt<kMeans, Size>(d, windows, from + channels - lanes, out + channels - lanes);
  }
}

// Rows of few channels take narrower vectors.
template <bool kMeans, class D, typename T = hn::TFromD<D>>
void ResultsBy(D d, const WindowsInRow<T>& windows) {
  if constexpr (hn::MaxLanes(D()) > 1) {
    if (windows.channels < static_cast<std::int64_t>(hn::Lanes(d)))
      return ResultsBy<kMeans>(hn::CappedTag<T, hn::MaxLanes(D()) / 2>(), windows);
  }
  if (windows.row_count == 2 && windows.taps == 2) return ResultsOfSize<kMeans, WindowSize<2, 2>>(d, windows);
  if (windows.row_count == 3 && windows.taps == 3) return ResultsOfSize<kMeans, WindowSize<3, 3>>(d, windows);
  ResultsOfSize<kMeans, WindowSize<0, 0>>(d, windows);
}

template <typename T>
void LargestWindows(const WindowsInRow<T>& windows) {
  ResultsBy<false>(hn::ScalableTag<T>(), windows);
}

template <typename T>
void MeanWindows(const WindowsInRow<T>& windows) {
  ResultsBy<true>(hn::ScalableTag<T>(), windows);
}

WindowsKernel<float> LargestFloats() { return &LargestWindows<float>; }
WindowsKernel<std::uint16_t> LargestBf16() { return &LargestWindows<std::uint16_t>; }
WindowsKernel<std::uint8_t> LargestUnsigned() { return &LargestWindows<std::uint8_t>; }
WindowsKernel<std::int8_t> LargestSigned() { return &LargestWindows<std::int8_t>; }
WindowsKernel<float> MeanFloats() { return &MeanWindows<float>; }
WindowsKernel<double> MeanDoubles() { return &MeanWindows<double>; }

}  // namespace rewire::kernel::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rewire::kernel::cpu {

HWY_EXPORT(LargestFloats);
HWY_EXPORT(LargestBf16);
HWY_EXPORT(LargestUnsigned);
HWY_EXPORT(LargestSigned);
HWY_EXPORT(MeanFloats);
HWY_EXPORT(MeanDoubles);

template <>
WindowsKernel<float> ChooseLargestWindowsKernel<float>() {
  return HWY_DYNAMIC_DISPATCH(LargestFloats)();
}
template <>
WindowsKernel<std::uint16_t> ChooseLargestWindowsKernel<std::uint16_t>() {
  return HWY_DYNAMIC_DISPATCH(LargestBf16)();
}
template <>
WindowsKernel<std::uint8_t> ChooseLargestWindowsKernel<std::uint8_t>() {
  return HWY_DYNAMIC_DISPATCH(LargestUnsigned)();
}
template <>
WindowsKernel<std::int8_t> ChooseLargestWindowsKernel<std::int8_t>() {
  return HWY_DYNAMIC_DISPATCH(LargestSigned)();
}
template <>
WindowsKernel<float> ChooseMeanWindowsKernel<float>() {
  return HWY_DYNAMIC_DISPATCH(MeanFloats)();
}
template <>
WindowsKernel<double> ChooseMeanWindowsKernel<double>() {
  return HWY_DYNAMIC_DISPATCH(MeanDoubles)();
}

}  // namespace rewire::kernel::cpu
#endif
