// SPDX-License-Identifier: Apache-2.0
//
// Element by element: two parts of a reduction become one.
#pragma once

#include <cstdint>
#include <type_traits>

#include "rewire/kernels/contract/collective.h"
#include "rewire/kernels/cpu/support/pace.h"
#include "rewire/kernels/cpu/support/types.h"

namespace rewire::collective {

using contract::CollectiveOp;

// into[i] = a[i] op b[i], in which a mean is still a sum. `into` may be a or b. Integers wrap; NaN stays.
template <typename T>
void Combine(CollectiveOp op, const T* a, const T* b, T* into, std::int64_t count) {
  switch (op) {
    case CollectiveOp::kSum:
    case CollectiveOp::kMean:
      for (std::int64_t i = 0; i < count; ++i) {
        if constexpr (std::is_integral_v<T>) {
          using Wide = kernel::cpu::Wrapping<T>;
          into[i] = static_cast<T>(static_cast<Wide>(a[i]) + static_cast<Wide>(b[i]));
        } else {
          into[i] = a[i] + b[i];
        }
      }
      return;
    case CollectiveOp::kMax:
      // A comparison with NaN is false, so NaN of a stays by the first test and NaN of b by the second.
      for (std::int64_t i = 0; i < count; ++i) into[i] = a[i] != a[i] || a[i] > b[i] ? a[i] : b[i];
      return;
    case CollectiveOp::kMin:
      for (std::int64_t i = 0; i < count; ++i) into[i] = a[i] != a[i] || a[i] < b[i] ? a[i] : b[i];
      return;
  }
}

// Makes of a sum over `ranks` ranks what `op` gives. Means are those of floats.
template <typename T>
kernel::Status FinishReduction(CollectiveOp op, T* values, std::int64_t count, int ranks) {
  if constexpr (std::is_floating_point_v<T>) {
    if (op != CollectiveOp::kMean) return kernel::Status();
    return kernel::cpu::SerialFor(count, 1, [=](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) values[i] /= static_cast<T>(ranks);
    });
  }
  return kernel::Status();
}

}  // namespace rewire::collective
