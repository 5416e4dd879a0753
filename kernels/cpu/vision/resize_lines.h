// SPDX-License-Identifier: Apache-2.0
//
// Lines of one axis of a resize, in vectors.
//
// A vector takes elements of one position, where many lie side by side at each position of the axis. Where
// there are few, a vector takes several positions, and permutes the inputs in their order.
#pragma once

#include <cstdint>

#include "rewire/kernels/cpu/vision/resample.h"

namespace rewire::kernel::cpu {

// The filter of an axis, from lines of [input, inner] to lines of [output, inner].
struct LineFilter {
  const Taps* taps;       // of each output position
  const double* weights;  // most_taps for each output position
  std::int64_t most_taps;
  std::int64_t input;
  std::int64_t output;
  std::int64_t inner;
  double outside;  // the value of positions that lie outside
};

// With at most as many elements at a position, several positions are permuted together.
inline constexpr std::int64_t kPermutedInner = 4;
// The taps that PermuteLines takes at most.
inline constexpr std::int64_t kPermutedTaps = 4;

// The elements that PermuteLines computes at once: those of a vector.
std::int64_t PermutedElements();
// Computes the elements from `element` on, at most PermutedElements(), of `count` lines. An element is an
// output position times inner, plus the element at this position. Lines of the input have at most 2^31 - 1.
void PermuteLines(const LineFilter& filter, std::int64_t element, const float* from, std::int64_t count,
                  float* to);

// Computes `width` elements of each of the output positions [begin, end) of a line. `from` and `to` point to
// the first of these elements at positions 0 and `begin`.
void BlendPositions(const LineFilter& filter, std::int64_t begin, std::int64_t end, std::int64_t width,
                    const float* from, float* to);
void BlendPositions(const LineFilter& filter, std::int64_t begin, std::int64_t end, std::int64_t width,
                    const double* from, double* to);

}  // namespace rewire::kernel::cpu
