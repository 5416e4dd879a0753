// SPDX-License-Identifier: Apache-2.0
// What the library is made of; rows as kernels/cpu has them.
#pragma once

#include <span>

#include "kernels/cpu/registry.h"

namespace rewire::kernel::onednn {

// In the order of the documentation. Static storage.
std::span<const cpu::Family> Families();

std::span<const cpu::Kernel> ConvKernels();
std::span<const cpu::Kernel> MatMulKernels();

}  // namespace rewire::kernel::onednn
