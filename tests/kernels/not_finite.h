// SPDX-License-Identifier: Apache-2.0
// The floats that are no numbers, by their short names.
#pragma once

#include <limits>

namespace rewire::test {

inline constexpr float kInf = std::numeric_limits<float>::infinity();
inline constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

}  // namespace rewire::test
