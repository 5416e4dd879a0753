// SPDX-License-Identifier: Apache-2.0
// Compiled once for each instruction set; see Highway's foreach_target.h.
#include "rewire/kernels/cpu/convolution/pool/sliding_windows.h"

#include <algorithm>
#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "rewire/kernels/cpu/convolution/pool/sliding_windows.cc"
#include <hwy/foreach_target.h>
// Behind it.
#include <hwy/highway.h>

#ifndef REWIRE_KERNELS_CPU_CONVOLUTION_SLIDING_WINDOWS_ONCE
#define REWIRE_KERNELS_CPU_CONVOLUTION_SLIDING_WINDOWS_ONCE
namespace rewire::kernel::cpu {
namespace {

constexpr std::int64_t kStripBytes = 32768;
constexpr std::int64_t kMostTaps = 1024;
// A line of a few outputs costs more than a loop over their windows.
constexpr std::int64_t kLeastColumns = 4;
constexpr std::int64_t kSlackBytes =
    128;  // behind a line: what the last vector reads too much, and alignment

// How the lines of a strip of `columns` outputs lie. `phases` are the remainders of the stride that taps
// have.
template <typename T>
struct StripLayout {
  StripLayout(const Window& window, std::int64_t columns)
      : phases(std::min(window.axes[2].stride, window.axes[2].reach())),
        phase_used(columns + (window.axes[2].reach() - 1) / window.axes[2].stride),
        phase_length((phase_used * std::int64_t{sizeof(T)} + kSlackBytes) / 64 * 64 /
                     std::int64_t{sizeof(T)}),
        line_length(phases * phase_length),
        line_count(window.axes[0].kernel * std::min(window.axes[1].reach(), window.axes[1].input)) {}
  // One line more is where the largest along a line are found.
  bool fits() const { return (line_count + 1) * line_length * std::int64_t{sizeof(T)} <= kStripBytes; }

  std::int64_t phases, phase_used, phase_length, line_length, line_count;
};

}  // namespace
}  // namespace rewire::kernel::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace rewire::kernel::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <typename T>
struct Largest {
  static constexpr bool kAlongLines = true;
  static constexpr T Start() {
    using Limits = std::numeric_limits<T>;
    return Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
  }
  // The first one of equals.
  template <class V>
  static HWY_INLINE V Join(V most, V value) {
    return hn::Max(value, most);
  }
};

template <typename T>
struct Sum {
  static constexpr bool kAlongLines = false;
  static constexpr T Start() { return 0; }
  template <class V>
  static HWY_INLINE V Join(V sum, V value) {
    return hn::Add(sum, value);
  }
};

// out[o] = the join of from[i][o] for i < count, in order; o < columns. What is read lies in strips, behind
// whose lines there is room. `out` may be one of `from` at the same place, or one that the others lie behind.
template <class Op, class D, typename T = hn::TFromD<D>>
HWY_INLINE void Fold(D d, const T* const* from, std::int64_t count, std::int64_t columns, T* out) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto start = hn::Set(d, Op::Start());
  std::int64_t o = 0;
  for (; o + 4 * lanes <= columns; o += 4 * lanes) {
    auto a = start, b = start, c = start, e = start;
    for (std::int64_t i = 0; i < count; ++i) {
      const T* line = from[i] + o;
      a = Op::Join(a, hn::LoadU(d, line));
      b = Op::Join(b, hn::LoadU(d, line + lanes));
      c = Op::Join(c, hn::LoadU(d, line + 2 * lanes));
      e = Op::Join(e, hn::LoadU(d, line + 3 * lanes));
    }
    hn::StoreU(a, d, out + o);
    hn::StoreU(b, d, out + o + lanes);
    hn::StoreU(c, d, out + o + 2 * lanes);
    hn::StoreU(e, d, out + o + 3 * lanes);
  }
  for (; o < columns; o += lanes) {
    auto a = start;
    for (std::int64_t i = 0; i < count; ++i) a = Op::Join(a, hn::LoadU(d, from[i] + o));
    if (o + lanes <= columns) {
      hn::StoreU(a, d, out + o);
    } else {
      alignas(64) T rest[hn::MaxLanes(D())];
      hn::Store(a, d, rest);
      std::copy_n(rest, columns - o, out + o);
    }
  }
}

// Strips of one call.
template <class Op, typename T>
class Strips {
  using D = hn::ScalableTag<T>;

 public:
  Strips(const PoolLines<T>& lines, PoolKind kind) : lines_(lines), kind_(kind) {}

  bool Run(Pace& pace) {
    const std::int64_t columns = lines_.window.axes[2].output;
    std::int64_t at_once = columns;
    while (!StripLayout<T>(lines_.window, at_once).fits()) at_once = (at_once + 1) / 2;
    for (std::int64_t begin = 0; begin < columns; begin += at_once) {
      if (!RunStrip(begin, std::min(columns, begin + at_once), pace)) return false;
      if (pace.stopped()) return true;
    }
    return true;
  }

 private:
  bool RunStrip(std::int64_t begin, std::int64_t end, Pace& pace) {
    const auto& [depth, rows, columns] = lines_.window.axes;
    const StripLayout<T> layout(lines_.window, end - begin);
    PlaceTaps(layout, begin, end);
    const std::int64_t ring = std::min(rows.reach(), rows.input);
    std::int64_t loaded_of = -1, next = 0;  // the output depth whose lines are there, and the row behind them
    for (std::int64_t line = lines_.first; line < lines_.last; ++line) {
      const std::int64_t oz = line / rows.output, oy = line % rows.output;
      std::int64_t z0, z1, y0, y1;
      depth.Inside(oz, &z0, &z1);
      rows.Inside(oy, &y0, &y1);
      if (loaded_of != oz) loaded_of = oz, next = 0;
      const std::int64_t last_row = y0 < y1 ? rows.start(oy) + (y1 - 1) * rows.dilation : -1;
      for (next = std::max(next, rows.start(oy)); next <= last_row; ++next) {
        for (std::int64_t i = z0; i < z1; ++i) {
          const std::int64_t z = depth.start(oz) + i * depth.dilation;
          const T* row = lines_.plane + (z * rows.input + next) * columns.input;
          if (!Load(layout, row, end - begin, Line(layout, i * ring + next % ring))) return false;
        }
        if (!pace.Spend((z1 - z0) * layout.line_length + kLineWork)) return true;
      }
      std::int64_t count = 0;
      for (std::int64_t i = z0; i < z1; ++i) {
        for (std::int64_t j = y0; j < y1; ++j) {
          const T* of_row = Line(layout, i * ring + (rows.start(oy) + j * rows.dilation) % ring);
          if constexpr (Op::kAlongLines) {
            from_[count++] = of_row;
          } else {
            for (std::int64_t k = 0; k < columns.kernel; ++k) from_[count++] = of_row + taps_[k];
          }
        }
      }
      T* out = lines_.out + line * columns.output;
      Fold<Op>(D(), from_, count, end - begin, out + begin);
      if constexpr (hwy::IsFloat<T>()) {
        if (IsMean()) Divide(CoveredRows(oz, oy), Line(layout, layout.line_count), end - begin, out + begin);
        if (kind_ == PoolKind::kRootOfSquares) TakeRoots(out + begin, end - begin);
      }
      if (!pace.Spend((end - begin) * count / 4 + kLineWork)) return true;
    }
    return true;
  }

  static constexpr std::int64_t kLineWork = 16;

  T* Line(const StripLayout<T>& layout, std::int64_t i) { return strip_ + i * layout.line_length; }

  bool IsMean() const { return kind_ == PoolKind::kMean || kind_ == PoolKind::kMeanWithPads; }

  // Finds what is the same for all lines of a strip: once, since the divisions take as long as a vector.
  void PlaceTaps(const StripLayout<T>& layout, std::int64_t begin, std::int64_t end) {
    const WindowAxis& columns = lines_.window.axes[2];
    const std::int64_t stride = columns.stride;
    for (std::int64_t k = 0; k < columns.kernel; ++k) {
      const std::int64_t at = k * columns.dilation;
      taps_[k] = at % stride * layout.phase_length + at / stride;
    }
    start_ = begin * stride - columns.before;
    skipped_ = std::max<std::int64_t>(0, -start_);
    copied_ = std::min(columns.input - start_, layout.phase_used * stride) - skipped_;
    for (std::int64_t r = 0; r < std::min(stride, kCopiedPhases); ++r) {
      const std::int64_t phase = (skipped_ + r) % stride;
      copies_[r] = phase < layout.phases ? phase * layout.phase_length + (skipped_ + r) / stride : kNotRead;
      if (r < layout.phases) inside_[r] = InsideOf(layout, r);
    }
    if constexpr (hwy::IsFloat<T>()) {
      if (IsMean()) CountColumns(begin, end, Line(layout, layout.line_count));
    }
  }

  // The elements [first, last) of a phase lie in the row.
  struct Inside {
    std::int64_t first, last;
  };
  Inside InsideOf(const StripLayout<T>& layout, std::int64_t phase) const {
    const WindowAxis& columns = lines_.window.axes[2];
    const std::int64_t from = start_ + phase, stride = columns.stride, used = layout.phase_used;
    const std::int64_t first = std::min(used, from < 0 ? (-from + stride - 1) / stride : 0);
    const std::int64_t last = from >= columns.input ? 0 : (columns.input - 1 - from) / stride + 1;
    return {first, std::max(first, std::min(used, last))};
  }

  // Reads what the strip's outputs need of a row, and for the largest joins it along the line.
  bool Load(const StripLayout<T>& layout, const T* row, std::int64_t count, T* line) {
    const WindowAxis& columns = lines_.window.axes[2];
    T* padded = line;
    if constexpr (Op::kAlongLines) {
      if (columns.kernel > 1) padded = Line(layout, layout.line_count);
    }
    const std::int64_t stride = columns.stride, used = layout.phase_used;
    const bool copies = stride <= kCopiedPhases;
    bool is_nan = copies && CopyPhases(row + start_ + skipped_, stride, padded);
    for (std::int64_t p = 0; p < layout.phases; ++p) {
      T* to = padded + p * layout.phase_length;
      const auto [first, last] = copies ? inside_[p] : InsideOf(layout, p);
      for (std::int64_t i = 0; i < first; ++i) to[i] = Op::Start();
      if (!copies) is_nan = CopyStrided(row + start_ + p, stride, first, last, to) || is_nan;
      for (std::int64_t i = last; i < used; ++i) to[i] = Op::Start();
      if constexpr (hwy::IsFloat<T>()) {
        if (kind_ == PoolKind::kSumOfMagnitudes || kind_ == PoolKind::kRootOfSquares) Prepare(to, used);
      }
    }
    if constexpr (Op::kAlongLines) {
      if (is_nan) return false;
      if (columns.kernel > 1) AlongLine(padded, count, line);
    }
    return true;
  }

  // Magnitudes or squares in place of elements. Behind the line there is room.
  void Prepare(T* line, std::int64_t count) const {
    const D d;
    const bool squares = kind_ == PoolKind::kRootOfSquares;
    for (std::int64_t i = 0; i < count; i += static_cast<std::int64_t>(hn::Lanes(d))) {
      const auto value = hn::LoadU(d, line + i);
      hn::StoreU(squares ? hn::Mul(value, value) : hn::Abs(value), d, line + i);
    }
  }

  static void TakeRoots(T* out, std::int64_t count) {
    const D d;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    std::int64_t i = 0;
    for (; i + lanes <= count; i += lanes) hn::StoreU(hn::Sqrt(hn::LoadU(d, out + i)), d, out + i);
    for (; i < count; ++i) out[i] = std::sqrt(out[i]);
  }

  // Copies what lies in the row, from its first element that is read on, to its phases. Returns whether a
  // number is NaN. Strides up to kCopiedPhases have loads of their own.
  static constexpr std::int64_t kCopiedPhases = 4, kNotRead = -1;
  bool CopyPhases(const T* from, std::int64_t stride, T* padded) const {
    T* to[kCopiedPhases];
    for (std::int64_t r = 0; r < stride; ++r) to[r] = copies_[r] == kNotRead ? nullptr : padded + copies_[r];
    Copier copier{to};
    switch (stride) {
      case 1:
        copier.template Copy<1>(from, copied_);
        break;
      case 2:
        copier.template Copy<2>(from, copied_);
        break;
      case 3:
        copier.template Copy<3>(from, copied_);
        break;
      default:
        copier.template Copy<4>(from, copied_);
    }
    return copier.is_nan;
  }

  // Element i goes to to[i % kStride][i / kStride]. Null where nobody reads it.
  struct Copier {
    T* const* to;
    bool is_nan = false;

    // The last vectors may reach behind the line, where there is room, and behind what is copied, which is
    // written later.
    template <int kStride>
    HWY_INLINE void Copy(const T* from, std::int64_t count) {
      const D d;
      const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
      HWY_ALIGN T rest[kStride * hn::MaxLanes(D())];
      auto nan = hn::Lt(hn::Zero(d), hn::Zero(d));
      std::int64_t done = 0;
      const auto put = [&](int r, auto value) HWY_ATTR {
        if (to[r] == nullptr) return;
        if constexpr (hwy::IsFloat<T>()) nan = hn::Or(nan, hn::IsNaN(value));
        hn::StoreU(value, d, to[r] + done);
      };
      const auto step = [&](const T* at) HWY_ATTR {
        if constexpr (kStride == 1) {
          put(0, hn::LoadU(d, at));
        } else {
          hn::Vec<D> a, b, c, e;
          if constexpr (kStride == 2) {
            hn::LoadInterleaved2(d, at, a, b);
          } else if constexpr (kStride == 3) {
            hn::LoadInterleaved3(d, at, a, b, c);
            put(2, c);
          } else {
            hn::LoadInterleaved4(d, at, a, b, c, e);
            put(2, c), put(3, e);
          }
          put(0, a), put(1, b);
        }
      };
      for (; (done + lanes) * kStride <= count; done += lanes) step(from + done * kStride);
      if (done * kStride < count) {
        std::fill(std::copy(from + done * kStride, from + count, rest), std::end(rest), T{0});
        step(rest);
      }
      is_nan = !hn::AllFalse(d, nan);
    }
  };

  // to[i] = from[i * stride] for [first, last). Returns whether one is NaN.
  static bool CopyStrided(const T* from, std::int64_t stride, std::int64_t first, std::int64_t last, T* to) {
    bool is_nan = false;
    for (std::int64_t i = first; i < last; ++i) {
      to[i] = from[i * stride];
      is_nan = is_nan || to[i] != to[i];
    }
    return is_nan;
  }

  // out[o] = the join of the taps of output o along its line. Of many taps those of twice the width come from
  // two of the width before, in place.
  void AlongLine(T* padded, std::int64_t count, T* out) {
    const WindowAxis& columns = lines_.window.axes[2];
    const std::int64_t kernel = columns.kernel, distance = columns.dilation;
    if (columns.stride > 1 || kernel <= kFewTaps) {
      for (std::int64_t k = 0; k < kernel; ++k) from_[k] = padded + taps_[k];
      Fold<Op>(D(), from_, kernel, count, out);
      return;
    }
    std::int64_t width = 1;
    for (; 2 * width < kernel; width *= 2) {
      const T* two[] = {padded, padded + width * distance};
      Fold<Op>(D(), two, 2, count + (kernel - 2 * width) * distance, padded);
    }
    const T* two[] = {padded, padded + (kernel - width) * distance};
    Fold<Op>(D(), two, 2, count, out);
  }
  static constexpr std::int64_t kFewTaps = 8;

  // How many columns the window at each output covers. Those of windows inside the line are equal.
  void CountColumns(std::int64_t begin, std::int64_t end, T* counts) const {
    const WindowAxis& columns = lines_.window.axes[2];
    const bool pads = kind_ == PoolKind::kMeanWithPads;
    const auto put = [&](std::int64_t o) {
      const std::int64_t covered = CoveredBy(columns, o, pads);
      counts[o - begin] = static_cast<T>(covered);
      return covered == columns.kernel;
    };
    std::int64_t first = begin, last = end;
    while (first < end && !put(first)) ++first;
    while (last > first && !put(last - 1)) --last;
    std::fill(counts + (first - begin), counts + (last - begin), static_cast<T>(columns.kernel));
  }
  // How many rows it covers.
  T CoveredRows(std::int64_t oz, std::int64_t oy) const {
    const bool pads = kind_ == PoolKind::kMeanWithPads;
    return static_cast<T>(
        Times(CoveredBy(lines_.window.axes[0], oz, pads), CoveredBy(lines_.window.axes[1], oy, pads)));
  }

  // Windows that cover nothing give 0.
  static void Divide(T rows, const T* columns, std::int64_t count, T* out) {
    const D d;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    const auto of_rows = hn::Set(d, rows);
    const auto mean = [&](auto sum, std::int64_t o) HWY_ATTR {
      const auto covered = hn::Mul(of_rows, hn::LoadU(d, columns + o));
      return hn::IfThenZeroElse(hn::Eq(covered, hn::Zero(d)), hn::Div(sum, covered));
    };
    std::int64_t o = 0;
    for (; o + lanes <= count; o += lanes) hn::StoreU(mean(hn::LoadU(d, out + o), o), d, out + o);
    if (o == count) return;
    HWY_ALIGN T rest[hn::MaxLanes(D())] = {};
    std::copy(out + o, out + count, rest);
    hn::Store(mean(hn::Load(d, rest), o), d, rest);
    std::copy_n(rest, count - o, out + o);
  }

  const PoolLines<T>& lines_;
  const PoolKind kind_;
  const T* from_[kMostTaps];
  std::int64_t taps_[kMostTaps];  // from the beginning of a line
  // The strip's first window begins at start_ in a row and covers so many elements before it. Then come those
  // that are copied, of which element r goes to copies_[r].
  std::int64_t start_, skipped_, copied_, copies_[kCopiedPhases];
  Inside inside_[kCopiedPhases];
  alignas(64) T strip_[kStripBytes / sizeof(T)];
};

template <typename T, PoolKind kKind, template <typename> class Op>
bool Slide(const PoolLines<T>& lines, Pace& pace) {
  Strips<Op<T>, T> strips(lines, kKind);
  return strips.Run(pace);
}

template <typename T>
SlideKernel<T> SlideOf(PoolKind kind) {
  if constexpr (hwy::IsFloat<T>()) {
    switch (kind) {
      case PoolKind::kLargest:
        break;
      case PoolKind::kMean:
        return &Slide<T, PoolKind::kMean, Sum>;
      case PoolKind::kMeanWithPads:
        return &Slide<T, PoolKind::kMeanWithPads, Sum>;
      case PoolKind::kSumOfMagnitudes:
        return &Slide<T, PoolKind::kSumOfMagnitudes, Sum>;
      case PoolKind::kRootOfSquares:
        return &Slide<T, PoolKind::kRootOfSquares, Sum>;
    }
  }
  return &Slide<T, PoolKind::kLargest, Largest>;
}

SlideKernel<float> SlideFloats(PoolKind kind) { return SlideOf<float>(kind); }
SlideKernel<double> SlideDoubles(PoolKind kind) { return SlideOf<double>(kind); }
SlideKernel<std::uint8_t> SlideUnsigned(PoolKind kind) { return SlideOf<std::uint8_t>(kind); }
SlideKernel<std::int8_t> SlideSigned(PoolKind kind) { return SlideOf<std::int8_t>(kind); }

}  // namespace rewire::kernel::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rewire::kernel::cpu {

template <typename T>
bool CanSlide(const Window& window) {
  const WindowAxis& columns = window.axes[2];
  const StripLayout<T> layout(window, kLeastColumns);
  return columns.output >= kLeastColumns && window.taps() <= kMostTaps && columns.before >= 0 &&
         window.inputs() > 0 && window.axes[1].reach() < kStripBytes && columns.reach() < kStripBytes &&
         layout.fits();
}
template bool CanSlide<float>(const Window&);
template bool CanSlide<double>(const Window&);
template bool CanSlide<std::uint8_t>(const Window&);
template bool CanSlide<std::int8_t>(const Window&);

HWY_EXPORT(SlideFloats);
HWY_EXPORT(SlideDoubles);
HWY_EXPORT(SlideUnsigned);
HWY_EXPORT(SlideSigned);

template <>
SlideKernel<float> ChooseSlideKernel<float>(PoolKind kind) {
  return HWY_DYNAMIC_DISPATCH(SlideFloats)(kind);
}
template <>
SlideKernel<double> ChooseSlideKernel<double>(PoolKind kind) {
  return HWY_DYNAMIC_DISPATCH(SlideDoubles)(kind);
}
template <>
SlideKernel<std::uint8_t> ChooseSlideKernel<std::uint8_t>(PoolKind kind) {
  return HWY_DYNAMIC_DISPATCH(SlideUnsigned)(kind);
}
template <>
SlideKernel<std::int8_t> ChooseSlideKernel<std::int8_t>(PoolKind kind) {
  return HWY_DYNAMIC_DISPATCH(SlideSigned)(kind);
}

}  // namespace rewire::kernel::cpu
#endif
