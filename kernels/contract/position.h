// SPDX-License-Identifier: Apache-2.0
//
// Positions along an axis that floats give.
#pragma once

#include <algorithm>
#include <cstdint>

namespace rewire::contract {

// The position of a float, its fraction cut off. It is held so far within the range of int64 that sums with
// sizes stay there; NaN becomes 0.
inline std::int64_t PositionOf(double x) {
  return x != x ? 0 : static_cast<std::int64_t>(std::clamp(x, -0x1p56, 0x1p56));
}

}  // namespace rewire::contract
