// SPDX-License-Identifier: Apache-2.0
//
// The kernels of this library, in rows like those of kernels/cpu. A kernel rewire.device.NAME does what
// rewire.NAME does, with the same arguments and attributes, on tensors of a device.
#pragma once

#include <span>

#include "rewire/kernels/cpu/registry.h"

namespace rewire::kernel::device {

using cpu::Describe;
using cpu::Kernel;

// Static storage.
std::span<const cpu::Family> Families();

std::span<const Kernel> ElementwiseKernels();
std::span<const Kernel> BinaryKernels();
std::span<const Kernel> CastKernels();
std::span<const Kernel> MovementKernels();
std::span<const Kernel> ProductKernels();
std::span<const Kernel> IntegerProductKernels();
std::span<const Kernel> QuantizationKernels();
std::span<const Kernel> WindowKernels();
std::span<const Kernel> ReductionKernels();
std::span<const Kernel> LineKernels();
std::span<const Kernel> RecurrentKernels();
std::span<const Kernel> NormalizationKernels();
std::span<const Kernel> PadKernels();
std::span<const Kernel> ResizeKernels();

}  // namespace rewire::kernel::device
