// SPDX-License-Identifier: Apache-2.0
// Compiled once for each instruction set; see Highway's foreach_target.h.
#include "rewire/kernels/cpu/vision/resize_lines.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "rewire/kernels/cpu/vision/resize_lines.cc"
#include <hwy/foreach_target.h>
// Behind it.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace rewire::kernel::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;
using Integers = hn::RebindToSigned<Floats>;
inline constexpr std::int64_t kMostLanes = hn::MaxLanes(Floats());

// The places of a vector's taps in a line, and their weights. Elements that the line does not have, and taps
// that an element does not have, are of weight 0.
struct VectorTaps {
  HWY_ALIGN std::int32_t offsets[kPermutedTaps][kMostLanes];  // from `base` on
  HWY_ALIGN float weights[kPermutedTaps][kMostLanes];
  HWY_ALIGN float start[kMostLanes];  // what the sum begins with
  std::int64_t base;                  // the first element of the line that is read
  std::int64_t span;                  // how many from there on
  std::int64_t count;                 // elements

  VectorTaps(const LineFilter& filter, std::int64_t element, std::int64_t lanes) {
    const std::int64_t inner = filter.inner, line = filter.input * inner;
    count = std::min(lanes, filter.output * inner - element);
    std::int64_t at[kPermutedTaps][kMostLanes], first = line, last = 0;
    std::int64_t o = element / inner, c = element % inner;
    for (std::int64_t l = 0; l < count; ++l) {
      const Taps& taps = filter.taps[o];
      start[l] = taps.outside ? static_cast<float>(filter.outside) : 0;
      for (std::int64_t t = 0; t < filter.most_taps; ++t) {
        const bool has = t < taps.count && !taps.outside;
        weights[t][l] = has ? static_cast<float>(filter.weights[o * filter.most_taps + t]) : 0;
        at[t][l] = std::clamp<std::int64_t>(taps.first + t, 0, filter.input - 1) * inner + c;
        first = std::min(first, at[t][l]);
        last = std::max(last, at[t][l]);
      }
      if (++c == inner) c = 0, ++o;
    }
    // Vectors are read whole, and not from behind the line where it is long enough.
    base = std::max<std::int64_t>(0, std::min(first, line - lanes));
    span = last + 1 - base;
    if (span > lanes) {
      base = std::max<std::int64_t>(0, std::min(first, line - 2 * lanes));
      span = last + 1 - base;
    }
    for (std::int64_t l = count; l < lanes; ++l) start[l] = 0;
    for (std::int64_t t = 0; t < filter.most_taps; ++t) {
      for (std::int64_t l = 0; l < count; ++l) {
        offsets[t][l] = static_cast<std::int32_t>(at[t][l] - base);
      }
      for (std::int64_t l = count; l < lanes; ++l) offsets[t][l] = 0, weights[t][l] = 0;
    }
  }
};

// A tap of weight 0 does not count, also where the element is infinite or NaN.
HWY_INLINE hn::Vec<Floats> AddTap(Floats d, hn::Vec<Floats> weight, hn::Vec<Floats> x, hn::Vec<Floats> sum) {
  return hn::MulAdd(weight, hn::IfThenElseZero(hn::Ne(weight, hn::Zero(d)), x), sum);
}

template <class D, typename T = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> LoadUpTo(D d, const T* from, std::int64_t count) {
  if (count >= static_cast<std::int64_t>(hn::Lanes(d))) return hn::LoadU(d, from);
  HWY_ALIGN T edge[hn::MaxLanes(D())] = {};
  std::copy(from, from + std::max<std::int64_t>(0, count), edge);
  return hn::Load(d, edge);
}

template <class D, typename T = hn::TFromD<D>>
HWY_INLINE void StoreUpTo(D d, hn::Vec<D> x, T* to, std::int64_t count) {
  if (count >= static_cast<std::int64_t>(hn::Lanes(d))) return hn::StoreU(x, d, to);
  HWY_ALIGN T edge[hn::MaxLanes(D())];
  hn::Store(x, d, edge);
  std::copy(edge, edge + count, to);
}

// The taps lie within kVectors vectors.
template <int kVectors, int kTaps>
void PermuteVectors(const LineFilter& filter, const VectorTaps& taps, std::int64_t element, const float* from,
                    std::int64_t count, float* to) {
  const Floats d;
  const Integers di;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t line = filter.input * filter.inner, out_line = filter.output * filter.inner;
  const auto most = hn::Set(di, static_cast<std::int32_t>(lanes) - 1);
  for (std::int64_t i = 0; i < count; ++i, from += line, to += out_line) {
    const auto low = LoadUpTo(d, from + taps.base, line - taps.base);
    [[maybe_unused]] auto high = low;
    if constexpr (kVectors > 1)
      high = LoadUpTo(d, from + std::min(line, taps.base + lanes), line - taps.base - lanes);
    auto sum = hn::Load(d, taps.start);
    for (int t = 0; t < kTaps; ++t) {
      const auto offsets = hn::Load(di, taps.offsets[t]);
      const auto order = hn::IndicesFromVec(d, hn::And(offsets, most));
      auto x = hn::TableLookupLanes(low, order);
      if constexpr (kVectors > 1) {
        const auto is_high = hn::RebindMask(d, hn::Gt(offsets, most));
        x = hn::IfThenElse(is_high, hn::TableLookupLanes(high, order), x);
      }
      sum = AddTap(d, hn::Load(d, taps.weights[t]), x, sum);
    }
    StoreUpTo(d, sum, to + element, taps.count);
  }
}

// The taps lie anywhere.
void GatherElements(const LineFilter& filter, const VectorTaps& taps, std::int64_t element, const float* from,
                    std::int64_t count, float* to) {
  for (std::int64_t l = 0; l < taps.count; ++l) {
    for (std::int64_t i = 0; i < count; ++i) {
      float sum = taps.start[l];
      for (std::int64_t t = 0; t < filter.most_taps; ++t) {
        const float* x = from + i * filter.input * filter.inner + taps.base + taps.offsets[t][l];
        if (taps.weights[t][l] != 0) sum += taps.weights[t][l] * *x;
      }
      to[i * filter.output * filter.inner + element + l] = sum;
    }
  }
}

template <int kTaps>
void PermuteTaps(const LineFilter& filter, std::int64_t element, const float* from, std::int64_t count,
                 float* to) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(Floats()));
  const VectorTaps taps(filter, element, lanes);
  const auto run = taps.span <= lanes       ? &PermuteVectors<1, kTaps>
                   : taps.span <= 2 * lanes ? &PermuteVectors<2, kTaps>
                                            : &GatherElements;
  run(filter, taps, element, from, count, to);
}

void PermuteLinesOfTarget(const LineFilter& filter, std::int64_t element, const float* from,
                          std::int64_t count, float* to) {
  const auto run = filter.most_taps == 1   ? &PermuteTaps<1>
                   : filter.most_taps == 2 ? &PermuteTaps<2>
                                           : &PermuteTaps<4>;
  run(filter, element, from, count, to);
}

std::int64_t LanesOfTarget() { return static_cast<std::int64_t>(hn::Lanes(Floats())); }

// The sum of `count` taps times their weights, or of kTaps if that is not 0.
template <int kTaps, typename T>
void BlendLine(const T* const* taps, const T* weights, std::int64_t count, std::int64_t width, T* to) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  if constexpr (kTaps != 0) count = kTaps;
  const auto sum_at = [&](std::int64_t k, const auto& load) {
    auto sum = hn::Zero(d);  // as PermuteLines
    for (std::int64_t t = 0; t < count; ++t) sum = hn::MulAdd(hn::Set(d, weights[t]), load(taps[t] + k), sum);
    return sum;
  };
  const auto whole = [&](const T* from) { return hn::LoadU(d, from); };
  std::int64_t k = 0;
  for (; k + lanes <= width; k += lanes) hn::StoreU(sum_at(k, whole), d, to + k);
  if (k == width) return;
  // The last vector ends where the line ends, and computes some elements again.
  if (width >= lanes) return hn::StoreU(sum_at(width - lanes, whole), d, to + width - lanes);
  StoreUpTo(d, sum_at(0, [&](const T* from) { return LoadUpTo(d, from, width); }), to, width);
}

// Adds further taps to a line.
template <typename T>
void AddTaps(const T* const* taps, const T* weights, std::int64_t count, std::int64_t width, T* to) {
  for (std::int64_t t = 0; t < count; ++t) {
    for (std::int64_t k = 0; k < width; ++k) to[k] += weights[t] * taps[t][k];
  }
}

template <typename T>
void BlendPosition(const LineFilter& filter, std::int64_t o, std::int64_t width, const T* from, T* to) {
  constexpr std::int64_t kAtOnce = 8;
  const Taps& of = filter.taps[o];
  if (of.outside) return std::fill(to, to + width, static_cast<T>(filter.outside));
  const T* taps[kAtOnce];
  T weights[kAtOnce];
  bool is_begun = false;
  std::int64_t t = 0;
  do {
    std::int64_t count = 0;
    for (; t < of.count && count < kAtOnce; ++t) {
      weights[count] = static_cast<T>(filter.weights[o * filter.most_taps + t]);
      taps[count] = from + std::clamp<std::int64_t>(of.first + t, 0, filter.input - 1) * filter.inner;
      // A tap of weight 0 does not count, also where the element is infinite or NaN.
      if (weights[count] != 0) ++count;
    }
    if (is_begun) {
      AddTaps(taps, weights, count, width, to);
    } else if (count == 0) {
      std::fill(to, to + width, T{0});
    } else {
      const auto blend = count == 1   ? &BlendLine<1, T>
                         : count == 2 ? &BlendLine<2, T>
                         : count == 4 ? &BlendLine<4, T>
                                      : &BlendLine<0, T>;
      blend(taps, weights, count, width, to);
    }
    is_begun = true;
  } while (t < of.count);
}

template <typename T>
void BlendOfTarget(const LineFilter& filter, std::int64_t begin, std::int64_t end, std::int64_t width,
                   const T* from, T* to) {
  for (std::int64_t o = begin; o < end; ++o, to += filter.inner) BlendPosition(filter, o, width, from, to);
}

void BlendFloats(const LineFilter& filter, std::int64_t begin, std::int64_t end, std::int64_t width,
                 const float* from, float* to) {
  BlendOfTarget(filter, begin, end, width, from, to);
}
void BlendDoubles(const LineFilter& filter, std::int64_t begin, std::int64_t end, std::int64_t width,
                  const double* from, double* to) {
  BlendOfTarget(filter, begin, end, width, from, to);
}

}  // namespace rewire::kernel::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rewire::kernel::cpu {

HWY_EXPORT(PermuteLinesOfTarget);
HWY_EXPORT(LanesOfTarget);
HWY_EXPORT(BlendFloats);
HWY_EXPORT(BlendDoubles);

std::int64_t PermutedElements() { return HWY_DYNAMIC_DISPATCH(LanesOfTarget)(); }
void PermuteLines(const LineFilter& filter, std::int64_t element, const float* from, std::int64_t count,
                  float* to) {
  HWY_DYNAMIC_DISPATCH(PermuteLinesOfTarget)(filter, element, from, count, to);
}
void BlendPositions(const LineFilter& filter, std::int64_t begin, std::int64_t end, std::int64_t width,
                    const float* from, float* to) {
  HWY_DYNAMIC_DISPATCH(BlendFloats)(filter, begin, end, width, from, to);
}
void BlendPositions(const LineFilter& filter, std::int64_t begin, std::int64_t end, std::int64_t width,
                    const double* from, double* to) {
  HWY_DYNAMIC_DISPATCH(BlendDoubles)(filter, begin, end, width, from, to);
}

}  // namespace rewire::kernel::cpu
#endif
