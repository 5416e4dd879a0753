// SPDX-License-Identifier: Apache-2.0
//
// Opens CUDA's driver and NVRTC. Nothing links against them, so the same build runs where they are missing.
#pragma once

#include <string>

#include "rewire/devices/cuda/driver_functions.h"
#include "rewire/devices/cuda/nvrtc_abi.h"

namespace rewire::cuda {

// Finds the functions in libcuda.so.1. False, with the words for it, if the library or a required function is
// missing. Libraries are never closed.
bool OpenDriver(CudaDriver* driver, std::string* reason);

// Finds NVRTC, the compiler of CUDA C++, in the newest version that is there. False, with the words for it,
// if there is none.
bool OpenNvrtc(Nvrtc* nvrtc, std::string* reason);

}  // namespace rewire::cuda
