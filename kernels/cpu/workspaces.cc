// SPDX-License-Identifier: Apache-2.0
// What kernels take from workspace(), for hosts that must know before a run. A kernel stands here once what
// it takes follows from its arguments' shapes.
#include <algorithm>
#include <vector>

#include "kernels/cpu/gemm_workspace.h"
#include "kernels/cpu/kernels_cpu.h"
#include "kernels/cpu/registry.h"

namespace rewire::kernel::cpu {
namespace {

std::int64_t LastDim(const DLTensor* tensor) {
  return tensor->ndim == 0 ? 1 : tensor->shape[tensor->ndim - 1];
}

std::int64_t ProductFrom(const DLTensor* tensor, std::int32_t first) {
  std::int64_t product = 1;
  for (std::int32_t i = first; i < tensor->ndim; ++i) {
    if (__builtin_mul_overflow(product, tensor->shape[i], &product)) return kGemmMost;
  }
  return product;
}

std::int32_t OneGemm(std::int64_t columns, std::int64_t depth, const DLTensor* like, std::uint64_t* blocks) {
  // 16-bit floats are multiplied as f32.
  const std::uint64_t element = std::max<std::uint64_t>(like->dtype.bits / 8, 4);
  blocks[0] = static_cast<std::uint64_t>(MostPacked(columns, depth)) * element;
  return 1;
}

std::int32_t None(const DLTensor* const*, std::int32_t, std::uint64_t*) { return 0; }

// x [.., K], w, .., out [.., N]; matmul of vectors has fewer dimensions.
std::int32_t Dense(const DLTensor* const* tensors, std::int32_t count, std::uint64_t* blocks) {
  if (count < 3) return -1;
  return OneGemm(LastDim(tensors[count - 1]), LastDim(tensors[0]), tensors[0], blocks);
}

// a [M, K] or its transpose: the larger of its dimensions is no less than K.
std::int32_t AnyGemm(const DLTensor* const* tensors, std::int32_t count, std::uint64_t* blocks) {
  if (count < 3 || tensors[0]->ndim != 2) return -1;
  const std::int64_t depth = std::max(tensors[0]->shape[0], tensors[0]->shape[1]);
  return OneGemm(LastDim(tensors[count - 1]), depth, tensors[0], blocks);
}

// x, w [M, C, taps..], .., out [N, M, outputs..].
std::int32_t Conv(const DLTensor* const* tensors, std::int32_t count, std::uint64_t* blocks) {
  if (count < 3 || tensors[1]->ndim < 3) return -1;
  return OneGemm(ProductFrom(tensors[count - 1], 2), ProductFrom(tensors[1], 1), tensors[0], blocks);
}

// x, w [columns, depth], ..: what stands for a row of the window outside of the image.
std::int32_t PackedConv(const DLTensor* const* tensors, std::int32_t count, std::uint64_t* blocks) {
  if (count < 3 || tensors[1]->ndim != 2) return -1;
  blocks[0] = static_cast<std::uint64_t>(LastDim(tensors[1])) * sizeof(float);
  return 1;
}

std::vector<RewireKernelWorkspace> AllWorkspaces() {
  std::vector<RewireKernelWorkspace> all = {
      {"rewire.dense", Dense}, {"rewire.matmul", Dense},           {"rewire.gemm", AnyGemm},
      {"rewire.conv", Conv},   {"rewire.packed.conv", PackedConv}, {"rewire.packed.depthwise", None}};
  for (const std::span<const Kernel> family :
       {ArithmeticKernels(), ComparisonKernels(), UnaryKernels(), ClassifyKernels(), BitwiseKernels(),
        ActivationKernels(), SelectKernels(), CastKernels(), PackedMatMulKernels(), PoolKernels(),
        SoftmaxKernels(), CopyKernels(), RearrangeKernels(), GatherKernels(), PadKernels(),
        ShapeFunctionKernels()}) {
    for (const Kernel& kernel : family) all.push_back({kernel.entry.name, None});
  }
  return all;
}

}  // namespace
}  // namespace rewire::kernel::cpu

const RewireKernelWorkspaces* RewireCpuWorkspaces() {
  static const std::vector<RewireKernelWorkspace> kEntries = rewire::kernel::cpu::AllWorkspaces();
  static const RewireKernelWorkspaces kList = {sizeof(RewireKernelWorkspaces),
                                               static_cast<std::uint32_t>(kEntries.size()), kEntries.data()};
  return &kList;
}
