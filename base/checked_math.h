// SPDX-License-Identifier: Apache-2.0
// Public header: <rewire/base/checked_math.h>.
//
// Integer arithmetic that detects overflow: each function returns nullopt instead of a wrapped result. Every
// size that comes from a file or a shape is computed with it.
#pragma once

#include <cstdint>
#include <optional>

namespace rewire {

template <typename T>
std::optional<T> CheckedAdd(T a, T b) {
  T out;
  if (__builtin_add_overflow(a, b, &out)) return std::nullopt;
  return out;
}

template <typename T>
std::optional<T> CheckedMul(T a, T b) {
  T out;
  if (__builtin_mul_overflow(a, b, &out)) return std::nullopt;
  return out;
}

// Rounds `value` up to a multiple of `alignment`, which is a power of two.
template <typename T>
std::optional<T> CheckedAlignUp(T value, T alignment) {
  T out;
  if (__builtin_add_overflow(value, static_cast<T>(alignment - 1), &out)) return std::nullopt;
  return static_cast<T>(out & ~static_cast<T>(alignment - 1));
}

constexpr bool IsPowerOfTwo(std::uint64_t value) { return value != 0 && (value & (value - 1)) == 0; }

}  // namespace rewire
