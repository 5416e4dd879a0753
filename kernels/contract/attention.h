// SPDX-License-Identifier: Apache-2.0
//
// Names of the kernels of attention, and the shape of its result.
#pragma once

#include "rewire/kernels/contract/shape.h"

namespace rewire::names {

// Attention.
inline constexpr char kAttention[] = "rewire.attention";

// Caches and positions of attention.
inline constexpr char kCacheAppend[] = "rewire.cache.append";
inline constexpr char kRotary[] = "rewire.rotary";

}  // namespace rewire::names

namespace rewire::contract {

// The shape of attention's result for queries of so many heads and this length: [batch, heads, length, size
// of values], or joined [batch, length, heads * size].
template <typename Result>
Result AttendedSizes(const auto& batch, const auto& heads, const auto& length, const auto& value_size,
                     bool joined) {
  Result sizes;
  sizes.push_back(batch);
  if (!joined) sizes.push_back(heads);
  sizes.push_back(length);
  sizes.push_back(joined ? Times(heads, value_size) : value_size);
  return sizes;
}

}  // namespace rewire::contract
