// SPDX-License-Identifier: Apache-2.0
//
// NVIDIA's libraries, opened by their names when a kernel first asks for them. REWIRE_CUDA_LIBRARIES=off in
// the environment leaves them alone.
#pragma once

#include <string>

#include "rewire/kernels/cuda_libraries/cublas_abi.h"
#include "rewire/kernels/cuda_libraries/cudnn_abi.h"

namespace rewire::kernel::cuda_libraries {

// Null if it is not there, or lacks a function. Stays open until the process ends.
const CublasFunctions* Cublas();
const CudnnFunctions* Cudnn();

// Whether calls may use them: they are there, and this process has opened CUDA's driver. A call on another
// device never uses them, but bounds of memory are computed without knowing the device.
bool CublasMayWork();
bool CudnnMayWork();

// "cuBLASLt 13.0, cuDNN 9.19", "cuBLASLt is not installed, ..." and so on: what was found and what was not.
std::string LibrariesText();

}  // namespace rewire::kernel::cuda_libraries
