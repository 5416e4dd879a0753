// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "rewire/tests/bench/vm_cases.h"

namespace rewire::bench {

// Bytes of the heap that a VirtualMachine over a Program with a gigabyte of parameters takes when it is made,
// from the Program's allocator and from elsewhere.
std::size_t MeasureVmBytes();
inline constexpr std::size_t kMostVmBytes = 4096;

}  // namespace rewire::bench
