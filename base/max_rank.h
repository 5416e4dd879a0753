// SPDX-License-Identifier: Apache-2.0
// Public header: <rewire/base/max_rank.h>.
#pragma once

#include <cstdint>

namespace rewire {

// The highest rank of a tensor that Rewire handles: in files, in the VM and in the compiler.
inline constexpr std::int32_t kMaxRank = 32;

}  // namespace rewire
