// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/cpu/support/workspace_sizes.h"

#include <algorithm>

#include "rewire/kernels/cpu/support/gemm_workspace.h"

namespace rewire::kernel::cpu {

void WorkspaceSizes::TakeGemm(std::int64_t rows, std::int64_t columns, std::int64_t depth, DLDataType dtype) {
  const bool is_integer = dtype.code == kDLInt && (dtype.bits == 32 || dtype.bits == 64);
  if ((dtype.code != kDLFloat && !is_integer) || !PacksMatrix(rows, columns, depth)) return;
  Take(MostPacked(columns, depth), dtype.bits / 8);
}

std::int64_t SizeFrom(const DLTensor* tensor, std::int32_t first_axis) {
  std::int64_t size = 1;
  for (std::int32_t i = first_axis; i < tensor->ndim; ++i) size = Times(size, tensor->shape[i]);
  return size;
}

std::int64_t LastDim(const DLTensor* tensor) {
  return tensor->ndim == 0 ? 1 : tensor->shape[tensor->ndim - 1];
}

std::int64_t LargestDim(const DLTensor* tensor) {
  return tensor->ndim == 0 ? 1 : *std::max_element(tensor->shape, tensor->shape + tensor->ndim);
}

}  // namespace rewire::kernel::cpu
