// SPDX-License-Identifier: Apache-2.0
#include "rewire/devices/cuda/driver.h"

#include <dlfcn.h>

namespace rewire::cuda {
namespace {

constexpr const char* kDriver = "libcuda.so.1";
// By version, the newest first.
constexpr const char* kCompilers[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2"};

constexpr bool required = true;   // NOLINT(readability-identifier-naming): as the list of functions says it
constexpr bool optional = false;  // NOLINT(readability-identifier-naming)

}  // namespace

bool OpenDriver(CudaDriver* driver, std::string* reason) {
  void* library = dlopen(kDriver, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    *reason = std::string(kDriver) + " cannot be opened (" + dlerror() + "); NVIDIA's driver has it";
    return false;
  }
  const char* missing = nullptr;
#define REWIRE_CUDA_ROW(name, symbol, parameters, need)                             \
  driver->name = reinterpret_cast<decltype(driver->name)>(dlsym(library, #symbol)); \
  if ((need) && driver->name == nullptr) missing = #symbol;
  REWIRE_CUDA_FUNCTIONS(REWIRE_CUDA_ROW)
#undef REWIRE_CUDA_ROW
  if (missing != nullptr) *reason = std::string(kDriver) + " has no function " + missing;
  return missing == nullptr;
}

bool OpenNvrtc(Nvrtc* nvrtc, std::string* reason) {
  void* library = nullptr;
  for (const char* name : kCompilers) {
    library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library != nullptr) break;
  }
  if (library == nullptr) {
    *reason = std::string("NVRTC is not installed (") + kCompilers[0] +
              " or an older version); it compiles CUDA C++, while PTX and cubin need only the driver";
    return false;
  }
  const char* missing = nullptr;
#define REWIRE_CUDA_ROW(name, result, parameters)                               \
  nvrtc->name = reinterpret_cast<decltype(nvrtc->name)>(dlsym(library, #name)); \
  if (nvrtc->name == nullptr) missing = #name;
  REWIRE_NVRTC_FUNCTIONS(REWIRE_CUDA_ROW)
#undef REWIRE_CUDA_ROW
  if (missing != nullptr) *reason = std::string("NVRTC has no function ") + missing;
  return missing == nullptr;
}

}  // namespace rewire::cuda
