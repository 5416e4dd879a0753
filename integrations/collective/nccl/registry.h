// SPDX-License-Identifier: Apache-2.0
//
// The kernels of this library, in rows like those of kernels/cpu.
#pragma once

#include <span>

#include "rewire/kernels/cpu/registry.h"

namespace rewire::collective {

// Static storage.
std::span<const kernel::cpu::Family> NcclFamilies();

std::span<const kernel::cpu::Kernel> NcclReduceKernels();
std::span<const kernel::cpu::Kernel> NcclMoveKernels();
std::span<const kernel::cpu::Kernel> NcclOverlapKernels();

}  // namespace rewire::collective
