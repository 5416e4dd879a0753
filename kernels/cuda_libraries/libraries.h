// SPDX-License-Identifier: Apache-2.0
//
// NVIDIA's libraries, opened by their names when a kernel first asks for them. In the environment,
// REWIRE_CUDA_LIBRARIES=off leaves them alone, and REWIRE_CUDA_LIBRARIES=always uses them whatever the size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "rewire/kernels/cpu/support/workspace_sizes.h"
#include "rewire/kernels/cuda_libraries/cublas_abi.h"
#include "rewire/kernels/cuda_libraries/cudnn_abi.h"

namespace rewire::kernel::cuda_libraries {

// Null if it is not there, or lacks a function. Stays open until the process ends.
const CublasFunctions* Cublas();
const CudnnFunctions* Cudnn();

// Scratch memory of a call that a library does. The libraries are asked only for algorithms that need no
// more, and a call that needs any takes all of it. So all calls of a VM use the same block, whatever their
// shapes, and a bound of memory knows it.
inline constexpr std::size_t kWorkspaceBytes = std::size_t{32} << 20;

// Whether calls may use them: they are there, and this process has opened CUDA's driver.
bool CublasMayWork();
bool CudnnMayWork();

// Whether cuDNN is worth its call, for a convolution of `outputs` elements that are sums of `depth` products.
// A call takes the host 50 to 100 us where the run is not a recording that is replayed. A GPU does a small
// convolution in less.
bool CudnnPays(std::int64_t outputs, std::int64_t depth);

// Declares the scratch memory of a call, unless it is on a device that is not CUDA's.
void DeclareScratch(bool may_work, cpu::WorkspaceSizes& sizes);

// "cuBLASLt 13.0, cuDNN 9.19", "cuBLASLt is not installed, ..." and so on: what was found and what was not.
std::string LibrariesText();

}  // namespace rewire::kernel::cuda_libraries
