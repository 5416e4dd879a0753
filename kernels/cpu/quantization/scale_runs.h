// SPDX-License-Identifier: Apache-2.0
//
// Conversions of tensors whose scales differ from element to element, in runs that are long enough for the
// CPU's vectors.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>

#include "rewire/kernels/cpu/math/quantized_math.h"
#include "rewire/kernels/cpu/quantization/scale_channels.h"
#include "rewire/kernels/cpu/support/parallel.h"
#include "rewire/vm/kernel/status.h"

namespace rewire::kernel::cpu {

// Shorter runs are not worth a call of QuantizedMath.
inline constexpr std::int64_t kShortRun = 8;

template <typename Q>
Quantization QuantizationOf(float scale, std::int64_t zero) {
  using Limits = std::numeric_limits<Q>;
  return {scale, static_cast<std::int32_t>(zero), Limits::min(), Limits::max()};
}

// Calls of_run(first, run, scale) for each run of elements whose scales, from number `scale` on, follow each
// other or are one, on all threads.
template <typename OfRun>
Status ForEachRun(const ScaleChannels& channels, std::int64_t size, std::int64_t grain, const OfRun& of_run) {
  return ParallelFor(size, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end;) {
      const ScaleChannels::Run run = channels.RunAt(i, end);
      of_run(i, run, channels.of(i));
      i += run.count;
    }
  });
}

// One direction of a conversion, of which Q are the integers: a run with one scale, one with a scale for each
// element, and what does for both. Integers of more than 8 bits have the last alone.
template <typename Q, typename X, typename Out>
struct Conversion {
  void (*by_one)(const X* from, std::int64_t count, const Quantization& by, Out* to);
  void (*by_each)(const X* from, std::int64_t count, const float* scales, const Q* zeros, Out* to);
  void (*plainly)(const X* from, std::int64_t count, const float* scales, const Q* zeros, std::int64_t step,
                  Out* to);
};

// Scales and zeros of few positions along the last axis, or of short runs of elements, repeated: so several
// rows of elements are one run.
template <typename Q>
struct RepeatedScales {
  static constexpr std::int64_t kUsual = 256, kMost = 1024, kFewPositions = 64;

  static bool Fits(const ScaleChannels& channels, std::int64_t size) {
    const std::int64_t row = channels.count * channels.inner;
    if (channels.block != 0 || channels.count == 1 || size < 2 * row) return false;
    return channels.inner == 1 ? channels.count <= kFewPositions
                               : channels.inner < kFewPositions && row <= kMost;
  }
  RepeatedScales(const float* of_scales, const Q* of_zeros, const ScaleChannels& channels)
      : count(channels.count * channels.inner),
        width(std::max<std::int64_t>(1, kUsual / count) * count),
        has_zeros(of_zeros != nullptr) {
    for (std::int64_t i = 0, position = 0; i < width; ++position) {
      if (position == channels.count) position = 0;
      for (const std::int64_t end = i + channels.inner; i < end; ++i) {
        scales[i] = of_scales[position];
        if (has_zeros) zeros[i] = of_zeros[position];
      }
    }
  }
  const Q* ZerosFrom(std::int64_t i) const { return has_zeros ? zeros + i : nullptr; }

  std::int64_t count, width;  // of elements
  bool has_zeros;
  float scales[kMost];
  Q zeros[kMost];
};

template <typename Q, typename X, typename Out>
Status ConvertRows(const Conversion<Q, X, Out>& conversion, const RepeatedScales<Q>& repeated,
                   std::int64_t size, std::int64_t grain, const X* from, Out* to) {
  return ParallelFor(size, grain, [&](std::int64_t begin, std::int64_t end) {
    while (begin < end) {
      const std::int64_t at = begin % repeated.count, count = std::min(end - begin, repeated.width - at);
      if (count >= kShortRun)
        conversion.by_each(from + begin, count, repeated.scales + at, repeated.ZerosFrom(at), to + begin);
      else
        conversion.plainly(from + begin, count, repeated.scales + at, repeated.ZerosFrom(at), 1, to + begin);
      begin += count;
    }
  });
}

// Blocks of so few elements that a call for each would take longer: the scales and zeros are written out for
// several blocks.
template <typename Q>
bool HasShortBlocks(const ScaleChannels& channels) {
  return sizeof(Q) == 1 && channels.inner == 1 && channels.block > 1 && channels.block < 2 * kShortRun;
}
template <typename Q, typename X, typename Out>
Status ConvertShortBlocks(const Conversion<Q, X, Out>& conversion, const ScaleChannels& channels,
                          std::int64_t size, std::int64_t grain, const X* from, const float* of_scales,
                          const Q* of_zeros, Out* to) {
  return ParallelFor(size, grain, [&](std::int64_t begin, std::int64_t end) {
    constexpr std::int64_t kMost = 256;
    float scales[kMost];
    Q zeros[kMost] = {};
    // Blocks follow each other, also from row to row.
    std::int64_t block = channels.of(begin), at = begin % channels.count;
    std::int64_t left = channels.RunAt(begin, end).count;
    while (begin < end) {
      const std::int64_t count = std::min(end - begin, kMost);
      for (std::int64_t i = 0; i < count; ++i) {
        scales[i] = of_scales[block];
        if (of_zeros != nullptr) zeros[i] = of_zeros[block];
        ++at;
        if (--left > 0) continue;
        ++block;
        if (at == channels.count) at = 0;
        left = std::min(channels.block, channels.count - at);
      }
      const Q* by_zeros = of_zeros == nullptr ? nullptr : zeros;
      if (count >= kShortRun)
        conversion.by_each(from + begin, count, scales, by_zeros, to + begin);
      else
        conversion.plainly(from + begin, count, scales, by_zeros, 1, to + begin);
      begin += count;
    }
  });
}

// Converts all elements, on all threads.
template <typename Q, typename X, typename Out>
Status Convert(const Conversion<Q, X, Out>& conversion, const ScaleChannels& channels, std::int64_t grain,
               TensorView x, TensorView scale, const std::optional<TensorView>& zero, TensorView out) {
  const X* from = x.data<X>();
  Out* to = out.data<Out>();
  const float* scales = scale.data<float>();
  const Q* zeros = zero ? zero->data<Q>() : nullptr;
  if constexpr (sizeof(Q) == 1) {
    if (x.size() > 0 && RepeatedScales<Q>::Fits(channels, x.size()))
      return ConvertRows(conversion, RepeatedScales<Q>(scales, zeros, channels), x.size(), grain, from, to);
    if (HasShortBlocks<Q>(channels))
      return ConvertShortBlocks(conversion, channels, x.size(), grain, from, scales, zeros, to);
  }
  return ForEachRun(
      channels, x.size(), grain, [&](std::int64_t first, ScaleChannels::Run run, std::int64_t c) {
        const Q* from_zero = zeros == nullptr ? nullptr : zeros + c;
        if constexpr (sizeof(Q) == 1) {
          if (run.count >= kShortRun && run.step == 0)
            return conversion.by_one(from + first, run.count,
                                     QuantizationOf<Q>(scales[c], zeros ? zeros[c] : 0), to + first);
          if (run.count >= kShortRun)
            return conversion.by_each(from + first, run.count, scales + c, from_zero, to + first);
        }
        conversion.plainly(from + first, run.count, scales + c, from_zero, run.step, to + first);
      });
}

}  // namespace rewire::kernel::cpu
