// SPDX-License-Identifier: Apache-2.0
//
// Intervals of integers: what is known about a number before its value is known.
//
// The ends of int64 mean that there is no bound on that side. Arithmetic that would exceed them results in
// them.
#pragma once

#include <cstdint>
#include <limits>

namespace rewire {

struct Interval {
  static constexpr std::int64_t kNoLeast = std::numeric_limits<std::int64_t>::min();
  static constexpr std::int64_t kNoMost = std::numeric_limits<std::int64_t>::max();

  std::int64_t least = kNoLeast;
  std::int64_t most = kNoMost;

  static Interval Of(std::int64_t value) { return {value, value}; }
  // The interval of all dimensions.
  static Interval FromZero() { return {0, kNoMost}; }
};

// The interval of the result for operands in `a` and `b`.
Interval SumOf(Interval a, Interval b);
Interval ProductOf(Interval a, Interval b);
// Rounded towards minus infinity; x / 0 is 0.
Interval FloorQuotientOf(Interval a, Interval b);
Interval LargerOf(Interval a, Interval b);
Interval SmallerOf(Interval a, Interval b);
// One of the two operands, not known which.
Interval EitherOf(Interval a, Interval b);

}  // namespace rewire
