// SPDX-License-Identifier: Apache-2.0
// Public header: <rewire/vm/device_waits.h>.
//
// Why a VM waited for a device, and how often.
#pragma once

#include <cstdint>

#include "rewire/base/export.h"

namespace rewire {

enum class WaitCause : std::uint32_t {
  kValue = 0,       // an instruction read an integer: If, a size, an offset
  kShape = 1,       // an instruction read a shape
  kHostKernel = 2,  // a kernel on the host reads what is still being copied there
  kObserver = 3,    // an observer may read what is still being copied
  kTransfer = 4,    // a copy between devices of different kinds goes through the host
  kManyCopies = 5,  // too many copies were under way at once
  kReuse = 6,       // memory of the host is needed that a copy uses
  kEnd = 7,         // the call returns
  kFailure = 8,     // the call returns with an error
};
inline constexpr std::uint32_t kWaitCauses = 9;

// "an instruction read a shape". Static storage.
REWIRE_API const char* WaitCauseText(WaitCause cause);

// How often the host waited, by cause.
struct WaitCounts {
  std::uint64_t counts[kWaitCauses] = {};

  std::uint64_t of(WaitCause cause) const { return counts[static_cast<std::uint32_t>(cause)]; }
  std::uint64_t all() const {
    std::uint64_t sum = 0;
    for (const std::uint64_t count : counts) sum += count;
    return sum;
  }
};

}  // namespace rewire
