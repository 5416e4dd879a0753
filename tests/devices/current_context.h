// SPDX-License-Identifier: Apache-2.0
//
// The current context of CUDA's driver, which is the host's.
#pragma once

#include <dlfcn.h>

#include "rewire/devices/cuda/driver_functions.h"

namespace rewire::test {

// The driver, ready for calls; its functions are null where there is none.
inline const cuda::CudaDriver& OpenCudaDriver() {
  static const cuda::CudaDriver kDriver = [] {
    cuda::CudaDriver driver;
    void* const library = dlopen("libcuda.so.1", RTLD_NOW);
    if (library == nullptr) return driver;
#define REWIRE_FIND(name, symbol, parameters, need) \
  driver.name = reinterpret_cast<decltype(driver.name)>(dlsym(library, #symbol));
    REWIRE_CUDA_FUNCTIONS(REWIRE_FIND)
#undef REWIRE_FIND
    if (driver.cuInit != nullptr) driver.cuInit(0);
    return driver;
  }();
  return kDriver;
}

inline cuda::CUcontext CurrentCudaContext() {
  cuda::CUcontext context = nullptr;
  OpenCudaDriver().cuCtxGetCurrent(&context);
  return context;
}

}  // namespace rewire::test
