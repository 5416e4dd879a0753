// SPDX-License-Identifier: Apache-2.0
// What the library is made of: every file of kernels exposes one list, registry.cc puts the lists together. A
// row carries the kernel's documentation, from which docs/kernels.md is generated.
#pragma once

#include <span>

#include "kernels/cpu/workspace_sizes.h"
#include "vm/kernel/define.h"

namespace rewire::kernel::cpu {

struct Kernel {
  RewireKernelEntry entry;
  const char* arguments;   // "x, w, bias?, out": optional ones with a question mark, written ones last
  const char* dtypes;      // what the typed arguments may be
  const char* attributes;  // "axis = -1, keepdims = 1"; empty when it takes none
  const char* meaning;
  RewireWorkspaceBound workspace;
};

template <typename K>
constexpr Kernel Describe(const char* arguments, const char* dtypes, const char* attributes,
                          const char* meaning) {
  return Kernel{Entry<K>(), arguments, dtypes, attributes, meaning, WorkspaceBound<K>()};
}

// A family, as docs/kernels.md shows it.
struct Family {
  const char* title;
  std::span<const Kernel> kernels;
};

// All of them, in the order of the documentation. Static storage.
std::span<const Family> Families();

std::span<const Kernel> ArithmeticKernels();
std::span<const Kernel> ComparisonKernels();
std::span<const Kernel> UnaryKernels();
std::span<const Kernel> ClassifyKernels();
std::span<const Kernel> BitwiseKernels();
std::span<const Kernel> ActivationKernels();
std::span<const Kernel> SelectKernels();
std::span<const Kernel> CastKernels();
std::span<const Kernel> MatMulKernels();
std::span<const Kernel> ConvKernels();
std::span<const Kernel> PackedMatMulKernels();
std::span<const Kernel> PackedConvKernels();
std::span<const Kernel> PackedIntegerMatMulKernels();
std::span<const Kernel> PackedIntegerConvKernels();
std::span<const Kernel> PoolKernels();
std::span<const Kernel> NormalizeKernels();
std::span<const Kernel> SoftmaxKernels();
std::span<const Kernel> ReduceKernels();
std::span<const Kernel> ArgReduceKernels();
std::span<const Kernel> CopyKernels();
std::span<const Kernel> RearrangeKernels();
std::span<const Kernel> GatherKernels();
std::span<const Kernel> GenerateKernels();
std::span<const Kernel> PadKernels();
std::span<const Kernel> ScatterKernels();
std::span<const Kernel> SortKernels();
std::span<const Kernel> FilterKernels();
std::span<const Kernel> AlongAxisKernels();
std::span<const Kernel> MoveShapeFunctionKernels();
std::span<const Kernel> ConvTransposeKernels();
std::span<const Kernel> MaxUnpoolKernels();
std::span<const Kernel> LossKernels();
std::span<const Kernel> QuantizeKernels();
std::span<const Kernel> IntegerProductKernels();
std::span<const Kernel> RecurrentKernels();
std::span<const Kernel> ResizeKernels();
std::span<const Kernel> NmsKernels();
std::span<const Kernel> GridSampleKernels();
std::span<const Kernel> RoiKernels();
std::span<const Kernel> EinsumKernels();
std::span<const Kernel> LinalgKernels();
std::span<const Kernel> TrainKernels();
std::span<const Kernel> TfIdfKernels();
std::span<const Kernel> SignalKernels();
std::span<const Kernel> RandomKernels();
std::span<const Kernel> ShapeFunctionKernels();
std::span<const Kernel> ShapeProgramKernels();

}  // namespace rewire::kernel::cpu
