// SPDX-License-Identifier: Apache-2.0
//
// One pass of a resize, along one axis: from [outer, input, inner] to [outer, output, inner].
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "rewire/kernels/cpu/support/parallel.h"
#include "rewire/kernels/cpu/support/workspace_sizes.h"
#include "rewire/kernels/cpu/vision/resample.h"
#include "rewire/kernels/cpu/vision/resize_lines.h"

namespace rewire::kernel::cpu {

// The taps of one axis after the other, for all its output positions.
struct ResizePlan {
  Taps* taps = nullptr;
  double* weights = nullptr;  // most_taps for each position
  std::int64_t most_taps = 0;

  Status Reserve(const ResizeAttributes& attributes, const ResizeAxis* axes, int count) {
    std::int64_t positions = 1, most_weights = 1;
    for (int i = 0; i < count; ++i) {
      positions = std::max(positions, axes[i].output);
      // At least what is declared: how much memory a run takes is known before it.
      most_weights = std::max({most_weights, Times(axes[i].output, axes[i].MostTaps(attributes)),
                               MostResizeWeights(attributes, axes[i].input, axes[i].output)});
    }
    if (Status s = Workspace(positions, &taps); !s.ok()) return s;
    return Workspace(most_weights, &weights);
  }
  // The same for lengths that are known from a file, with whatever scales they have come about.
  static void Declare(const ResizeAttributes& attributes, const DLTensor* x, const DLTensor* out,
                      WorkspaceSizes& sizes) {
    std::int64_t positions = 1, most_weights = 1;
    for (std::int32_t i = 0; i < out->ndim; ++i) {
      positions = std::max(positions, out->shape[i]);
      most_weights = std::max(most_weights, MostResizeWeights(attributes, x->shape[i], out->shape[i]));
    }
    sizes.Take(positions, sizeof(Taps));
    sizes.Take(most_weights, sizeof(double));
  }
  Status Make(const ResizeAttributes& attributes, const ResizeAxis& axis) {
    most_taps = axis.MostTaps(attributes);
    Pace pace;
    for (std::int64_t o = 0; o < axis.output; ++o) {
      taps[o] = axis.At(attributes, o, weights + o * most_taps, pace);
      if (!pace.Spend(8)) return Stopped();
    }
    return Status();
  }
};

// The sources of a vector's elements are found out once for several lines.
inline Status PermutePass(const LineFilter& filter, std::int64_t outer, const float* from, float* to) {
  constexpr std::int64_t kLines = 64;
  const std::int64_t at_once = PermutedElements();
  const std::int64_t in_line = filter.input * filter.inner, out_line = filter.output * filter.inner;
  const std::int64_t work = at_once * (1 + filter.most_taps);
  return ParallelFor(outer, GrainOf(kGrain, out_line, 1 + filter.most_taps),
                     [&](std::int64_t begin, std::int64_t end, Pace& pace) {
                       for (std::int64_t i = begin; i < end; i += kLines) {
                         const std::int64_t lines = std::min(kLines, end - i);
                         for (std::int64_t e = 0; e < out_line; e += at_once) {
                           if (!pace.Spend(lines * work)) return;
                           // The last vector computes some elements again.
                           const std::int64_t at = std::max<std::int64_t>(0, std::min(e, out_line - at_once));
                           PermuteLines(filter, at, from + i * in_line, lines, to + i * out_line);
                         }
                       }
                     });
}

template <typename Number>
Status BlendPass(const LineFilter& filter, std::int64_t outer, const Number* from, Number* to) {
  const std::int64_t inner = filter.inner, output = filter.output;
  const std::int64_t element_work = 1 + filter.most_taps, work = 1 + Times(inner, element_work);
  return ParallelFor(Times(outer, output), GrainOf(kGrain, work),
                     [&](std::int64_t begin, std::int64_t end, Pace& pace) {
                       while (begin < end) {
                         const std::int64_t first = begin % output;
                         const Number* in = from + begin / output * filter.input * inner;
                         Number* line = to + begin * inner;
                         if (work > kPace) {
                           const auto blend = [&](std::int64_t k, std::int64_t k_end) {
                             BlendPositions(filter, first, first + 1, k_end - k, in + k, line + k);
                           };
                           if (!pace.For(inner, element_work, blend)) return;
                           ++begin;
                         } else {
                           const std::int64_t count = std::min(output - first, end - begin);
                           const auto blend = [&](std::int64_t o, std::int64_t o_end) {
                             BlendPositions(filter, first + o, first + o_end, inner, in, line + o * inner);
                           };
                           if (!pace.For(count, work, blend)) return;
                           begin += count;
                         }
                       }
                     });
}

// `outside` is the value of positions that lie outside. Number is float or double.
template <typename Number>
Status ResizePass(const ResizeAxis& axis, const ResizePlan& plan, std::int64_t outer, std::int64_t inner,
                  double outside, const Number* from, Number* to) {
  const LineFilter filter = {plan.taps,   plan.weights, plan.most_taps, axis.input,
                             axis.output, inner,        outside};
  if constexpr (std::is_same_v<Number, float>) {
    const bool permutes = inner <= kPermutedInner && plan.most_taps <= kPermutedTaps &&
                          Times(axis.input, inner) <= std::numeric_limits<std::int32_t>::max();
    if (permutes) return PermutePass(filter, outer, from, to);
  }
  return BlendPass(filter, outer, from, to);
}

}  // namespace rewire::kernel::cpu
