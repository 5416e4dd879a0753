// SPDX-License-Identifier: Apache-2.0
//
// The functions of the driver that a process has opened, for simulated libraries that stand on it.
#pragma once

#include <dlfcn.h>

#include "rewire/devices/cuda/driver_functions.h"

namespace rewire::test {

inline const cuda::CudaDriver& OpenedDriver() {
  using namespace rewire::cuda;  // NOLINT(google-build-using-namespace)
  static const CudaDriver kDriver = [] {
    CudaDriver found;
    void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
#define REWIRE_FIND(name, symbol, parameters, need) \
  found.name = reinterpret_cast<decltype(found.name)>(dlsym(library, #symbol));
    REWIRE_CUDA_FUNCTIONS(REWIRE_FIND)
#undef REWIRE_FIND
    return found;
  }();
  return kDriver;
}

}  // namespace rewire::test
