// SPDX-License-Identifier: Apache-2.0
// Lists of positions that are put in order.
#pragma once

#include <cstdint>

#include "rewire/kernels/cpu/indexing/ordered_key.h"
#include "rewire/kernels/cpu/support/pace.h"

namespace rewire::kernel::cpu {

// 0, 1, 2, ...
inline bool Enumerate(std::int64_t* order, std::int64_t count, Pace& pace) {
  return pace.For(count, 1, [=](std::int64_t i, std::int64_t end) {
    for (; i < end; ++i) order[i] = i;
  });
}

// Replaces keyed positions by the positions in them.
inline bool KeepPositions(std::int64_t* order, std::int64_t count, Pace& pace) {
  return pace.For(count, 1, [=](std::int64_t i, std::int64_t end) {
    for (; i < end; ++i) order[i] = PositionOf(order[i]);
  });
}

}  // namespace rewire::kernel::cpu
