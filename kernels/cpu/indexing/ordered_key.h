// SPDX-License-Identifier: Apache-2.0
//
// Elements as integers in the same order, which are compared faster than elements and positions apart.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "rewire/kernels/cpu/support/types.h"

namespace rewire::kernel::cpu {

// A total order: NaN is above all numbers and equal to itself.
template <typename T>
bool IsBelow(T a, T b) {
  if (b != b) return a == a;
  return a < b;
}

template <typename T>
using OrderedKey = std::conditional_t<sizeof(T) == 8, std::int64_t, std::int32_t>;

// A total order: both zeros are one key, and NaN is above all numbers and equal to itself.
template <typename T>
OrderedKey<T> OrderedKeyOf(T x) {
  using Key = OrderedKey<T>;
  constexpr Key kMost = std::numeric_limits<Key>::max(), kSign = std::numeric_limits<Key>::min();
  if constexpr (std::is_integral_v<T>) {
    // The sign is flipped where it is the highest bit of a number.
    if constexpr (std::is_unsigned_v<T> && sizeof(T) == sizeof(Key)) return static_cast<Key>(x) ^ kSign;
    return static_cast<Key>(x);
  } else if constexpr (sizeof(T) == 2) {
    return OrderedKeyOf(static_cast<float>(x));
  } else {
    const auto bits = std::bit_cast<Key>(x + T{0});  // -0 becomes 0
    return x != x ? kMost : bits < 0 ? bits ^ kMost : bits;
  }
}

// True if a key and a position fit in one integer.
template <typename T>
bool HasKeyedPositions(std::int64_t count) {
  return sizeof(T) <= 4 && count <= std::numeric_limits<std::uint32_t>::max();
}
// Orders by keys, and equal ones by positions.
inline std::int64_t KeyedPosition(std::int32_t key, std::int64_t position) {
  return static_cast<std::int64_t>((static_cast<std::uint64_t>(static_cast<std::uint32_t>(key)) << 32) |
                                   static_cast<std::uint64_t>(position));
}
// Equal keys have equal parts.
inline std::int64_t KeyPart(std::int64_t keyed) { return keyed >> 32; }
inline std::int64_t PositionOf(std::int64_t keyed) { return keyed & 0xFFFFFFFF; }

}  // namespace rewire::kernel::cpu
