// SPDX-License-Identifier: Apache-2.0
// The attribute `bits` of kernels of weights in blocks.
#pragma once

#include <cstdint>

#include "rewire/vm/kernel/status.h"

namespace rewire::kernel::cpu {

inline Status CheckBlockedBits(std::int64_t bits) {
  if (bits == 4 || bits == 8) return Status();
  return ValueError("bits is ", bits, ", expected 4 or 8");
}

}  // namespace rewire::kernel::cpu
