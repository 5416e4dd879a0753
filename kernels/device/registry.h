// SPDX-License-Identifier: Apache-2.0
//
// The kernels of this library, in rows like those of kernels/cpu. A kernel rewire.device.NAME does what
// rewire.NAME does, with the same arguments and attributes, on tensors of a device.
#pragma once

#include <initializer_list>
#include <span>
#include <string_view>

#include "rewire/kernels/cpu/registry.h"

namespace rewire::kernel::device {

using cpu::Describe;
using cpu::Kernel;

// The row, with these arguments in memory of the host. The kernel reads them before it returns.
constexpr Kernel OnHost(Kernel kernel, std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) {
    const std::int32_t at = cpu::row_text::Find(kernel.arguments, name);
    if (at < 0) cpu::row_text::ThisRowIsWrong("there is no such argument");
    kernel.arguments.list[at].flags |= REWIRE_ARGUMENT_ON_HOST;
  }
  return kernel;
}

// Static storage.
std::span<const cpu::Family> Families();

std::span<const Kernel> ElementwiseKernels();
std::span<const Kernel> BinaryKernels();
std::span<const Kernel> CastKernels();
std::span<const Kernel> MovementKernels();
std::span<const Kernel> AttentionKernels();
std::span<const Kernel> GatherKernels();
std::span<const Kernel> ScatterKernels();
std::span<const Kernel> TreeEnsembleKernels();
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
