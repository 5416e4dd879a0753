// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace rewire {

// The unit in which CPUs keep their caches consistent. Data that different threads write is placed this far
// apart, because each write would otherwise take the line from the other thread. This is our own constant,
// since std::hardware_destructive_interference_size changes with compiler flags.
inline constexpr std::size_t kCacheLine = 64;

}  // namespace rewire
