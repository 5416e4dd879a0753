// SPDX-License-Identifier: Apache-2.0
//
// The functions of this library return these after an error of the driver.
#pragma once

#include "rewire/devices/cuda/driver_functions.h"
#include "rewire/devices/support/words.h"
#include "rewire/vm/kernel/device_api.h"

namespace rewire::cuda {

using devices::FailWith;
using devices::LastWords;

// Sets the thread's words for an error of the driver's in `function`, "cuLaunchKernel: CUDA_ERROR_... (...)",
// and returns the code for the caller. Errors after which a context is of no use are REWIRE_DEVICE_LOST.
int FailIn(const CudaDriver& driver, const char* function, CUresult error);
// Success, or FailIn.
inline int CodeOf(const CudaDriver& driver, const char* function, CUresult error) {
  return error == CUDA_SUCCESS ? REWIRE_DEVICE_OK : FailIn(driver, function, error);
}

}  // namespace rewire::cuda
