// SPDX-License-Identifier: Apache-2.0
// Intervals of integers: what is known of a number before it is.
//
// The ends of int64 stand for no bound on that side; arithmetic that passes them arrives there.
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
  // All dimensions.
  static Interval FromZero() { return {0, kNoMost}; }
};

// Where the result lies when the operands lie in `a` and `b`.
Interval SumOf(Interval a, Interval b);
Interval ProductOf(Interval a, Interval b);
// Rounded towards minus infinity; x / 0 is 0.
Interval FloorQuotientOf(Interval a, Interval b);
Interval LargerOf(Interval a, Interval b);
Interval SmallerOf(Interval a, Interval b);

}  // namespace rewire
