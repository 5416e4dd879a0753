// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace rewire {

// What CPUs keep in step as one piece. Things that different threads write stand this far apart, or each
// write would take the line from the other thread. A number of ours:
// std::hardware_destructive_interference_size changes with compiler flags.
inline constexpr std::size_t kCacheLine = 64;

}  // namespace rewire
