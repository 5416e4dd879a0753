// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/cuda_libraries/libraries.h"

#include <dlfcn.h>

#include <cstdlib>
#include <initializer_list>
#include <string_view>

#include "rewire/vm/kernel/device_type.h"

namespace rewire::kernel::cuda_libraries {
namespace {

enum class Use : std::uint8_t { kOff, kWherePays, kAlways };

Use UseOfLibraries() {
  static const Use kUse = [] {
    const char* value = std::getenv("REWIRE_CUDA_LIBRARIES");
    const std::string_view text = value != nullptr ? value : "";
    return text == "off" ? Use::kOff : text == "always" ? Use::kAlways : Use::kWherePays;
  }();
  return kUse;
}

bool AreOff() { return UseOfLibraries() == Use::kOff; }

void* OpenFirst(std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL); library != nullptr) return library;
  }
  return nullptr;
}

// The functions of a library, and why there are none.
template <typename Functions>
struct Opened {
  Functions functions;
  std::string reason;
};

template <typename F>
void Find(void* library, const char* name, F* function, std::string* reason) {
  *function = reinterpret_cast<F>(dlsym(library, name));
  if (*function == nullptr) *reason = std::string("has no function ") + name;
}

// The library with the first of the names that is installed, opened once. `find` finds its functions.
template <typename Functions>
const Opened<Functions>& Open(std::initializer_list<const char*> names,
                              void (*find)(void* library, Opened<Functions>* opened)) {
  // Never destroyed: handles may be destroyed later than static objects. There is one for each `Functions`.
  static const auto* const kOpened = [&] {
    auto* made = new Opened<Functions>();
    void* library = AreOff() ? nullptr : OpenFirst(names);
    if (library != nullptr) {
      find(library, made);
    } else {
      made->reason = AreOff() ? "is off" : "is not installed";
    }
    return made;
  }();
  return *kOpened;
}

#define REWIRE_FIND(name, parameters) Find(library, #name, &opened->functions.name, &opened->reason);

const Opened<CublasFunctions>& OpenCublas() {
  return Open<CublasFunctions>({"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so.11"},
                               [](void* library, Opened<CublasFunctions>* opened) {
                                 REWIRE_CUBLAS_FUNCTIONS(REWIRE_FIND)
                                 REWIRE_FIND(cublasLtGetVersion, ())
                               });
}

const Opened<CudnnFunctions>& OpenCudnn() {
  return Open<CudnnFunctions>({"libcudnn.so.9", "libcudnn.so.8"},
                              [](void* library, Opened<CudnnFunctions>* opened) {
                                REWIRE_CUDNN_FUNCTIONS(REWIRE_FIND)
                                REWIRE_FIND(cudnnGetVersion, ())
                              });
}

#undef REWIRE_FIND

bool DriverIsOpen() {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  if (driver != nullptr) dlclose(driver);
  return driver != nullptr;
}

// 90100 and, for cuDNN 8, 8902.
std::string VersionText(std::size_t version) {
  const std::size_t major = version >= 10000 ? version / 10000 : version / 1000;
  const std::size_t minor = version >= 10000 ? version / 100 % 100 : version / 100 % 10;
  return std::to_string(major) + "." + std::to_string(minor);
}

}  // namespace

const CublasFunctions* Cublas() {
  const Opened<CublasFunctions>& opened = OpenCublas();
  return opened.reason.empty() ? &opened.functions : nullptr;
}

const CudnnFunctions* Cudnn() {
  const Opened<CudnnFunctions>& opened = OpenCudnn();
  return opened.reason.empty() ? &opened.functions : nullptr;
}

bool CublasMayWork() { return DriverIsOpen() && Cublas() != nullptr; }
bool CudnnMayWork() { return DriverIsOpen() && Cudnn() != nullptr; }

bool CudnnPays(std::int64_t outputs, std::int64_t depth) {
  constexpr std::int64_t kLeastProducts = std::int64_t{1} << 24;
  return UseOfLibraries() == Use::kAlways || (outputs > 0 && depth > kLeastProducts / outputs);
}

void DeclareScratch(bool may_work, cpu::WorkspaceSizes& sizes) {
  const DLTensor* out = sizes.Tensor(-1);
  const bool elsewhere = out != nullptr && DeviceTypeOf(out->device) != kDLCUDA;
  if (may_work && !elsewhere) sizes.Take(kWorkspaceBytes, 1);
}

std::string LibrariesText() {
  const CublasFunctions* cublas = Cublas();
  const CudnnFunctions* cudnn = Cudnn();
  return "cuBLASLt " + (cublas != nullptr ? VersionText(cublas->cublasLtGetVersion()) : OpenCublas().reason) +
         ", cuDNN " + (cudnn != nullptr ? VersionText(cudnn->cudnnGetVersion()) : OpenCudnn().reason);
}

}  // namespace rewire::kernel::cuda_libraries
