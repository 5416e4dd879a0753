// SPDX-License-Identifier: Apache-2.0
//
// The kernels of this library, in rows like those of kernels/cpu.
#pragma once

#include <span>

#include "rewire/kernels/cpu/registry.h"

namespace rewire::kernel::image {

// Static storage.
std::span<const cpu::Family> Families();

std::span<const cpu::Kernel> DecodeKernels();

}  // namespace rewire::kernel::image
