// SPDX-License-Identifier: Apache-2.0
//
// Names of the kernels of attention.
#pragma once

namespace rewire::names {

// Attention.
inline constexpr char kAttention[] = "rewire.attention";

// Caches and positions of attention.
inline constexpr char kCacheAppend[] = "rewire.cache.append";
inline constexpr char kRotary[] = "rewire.rotary";

}  // namespace rewire::names
