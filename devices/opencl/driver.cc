// SPDX-License-Identifier: Apache-2.0
#include "rewire/devices/opencl/driver.h"

#include <dlfcn.h>

namespace rewire::opencl {
namespace {

constexpr const char* kLibrary = "libOpenCL.so.1";

}  // namespace

bool Driver::Open(std::string* reason) {
  void* library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* words = dlerror();
    *reason = std::string(kLibrary) + " cannot be opened (" + (words != nullptr ? words : "no reason given") +
              "); on Debian, ocl-icd-libopencl1 has it";
    return false;
  }
  const char* missing = nullptr;
#define REWIRE_OPENCL_OPTIONAL(name) name = reinterpret_cast<decltype(name)>(dlsym(library, #name));
#define REWIRE_OPENCL_FUNCTION(name) \
  REWIRE_OPENCL_OPTIONAL(name)       \
  if (name == nullptr) missing = #name;
#include "rewire/devices/opencl/functions.def"
  if (missing != nullptr) *reason = std::string(kLibrary) + " has no function " + missing;
  return missing == nullptr;
}

}  // namespace rewire::opencl
