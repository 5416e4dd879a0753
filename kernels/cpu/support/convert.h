// SPDX-License-Identifier: Apache-2.0
//
// Converts a number to another type. Defined for every value.
#pragma once

#include <limits>
#include <type_traits>

#include "rewire/kernels/cpu/support/types.h"

namespace rewire::kernel::cpu {

// C++ does not define the conversion of a float outside the integer's range. Here it becomes the nearest
// value, and NaN becomes 0. Integers wrap. Any non-zero value becomes true.
template <typename To, typename From>
Stored<To> ToType(From x) {
  using Limits = std::numeric_limits<To>;
  if constexpr (kIsHalf<From>) {
    return ToType<To>(static_cast<float>(x));
  } else if constexpr (kIsHalf<To>) {
    return To(static_cast<float>(x));
  } else if constexpr (std::is_same_v<To, bool>) {
    return x != 0;
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    // The limits as floats. The upper one may be rounded up to a value just out of range, hence >=.
    if (x != x) return 0;
    if (x <= static_cast<From>(Limits::min())) return Limits::min();
    if (x >= static_cast<From>(Limits::max())) return Limits::max();
    return static_cast<To>(x);
  } else {
    return static_cast<To>(x);
  }
}

// As ToType for a number that the caller knows to fit once its fraction is cut off. A loop over it becomes
// vectors.
template <typename To, typename From>
To ToTypeInRange(From x) {
  static_assert(std::is_floating_point_v<From> && std::is_integral_v<To>);
  return static_cast<To>(x);
}

}  // namespace rewire::kernel::cpu
