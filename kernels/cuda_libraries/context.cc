// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/cuda_libraries/context.h"

#include <dlfcn.h>

#include <mutex>
#include <type_traits>
#include <vector>

namespace rewire::kernel::cuda_libraries {
namespace {

// The driver's functions. 0 is success, and the status of a stream that is not recorded. Contexts and streams
// are pointers.
struct DriverFunctions {
  int (*get_device)(int* device, int ordinal) = nullptr;
  int (*retain)(void** context, int device) = nullptr;
  int (*push)(void* context) = nullptr;
  int (*pop)(void** context) = nullptr;
  int (*is_capturing)(void* stream, int* status) = nullptr;  // may be missing

  DriverFunctions() {
    void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return;
    const auto find = [library](const char* name, auto* function) {
      *function = reinterpret_cast<std::decay_t<decltype(*function)>>(dlsym(library, name));
    };
    find("cuDeviceGet", &get_device);
    find("cuDevicePrimaryCtxRetain", &retain);
    find("cuCtxPushCurrent_v2", &push);
    find("cuCtxPopCurrent_v2", &pop);
    find("cuStreamIsCapturing", &is_capturing);
  }
};

const DriverFunctions& Driver() {
  static const DriverFunctions kFunctions;
  return kFunctions;
}

// Contexts are held until the process ends, as devices/cuda holds them.
struct Contexts {
  std::mutex mutex;
  std::vector<void*> of_device;
};

// The device's primary context; null if the driver refuses.
void* ContextOf(std::int32_t device_id) {
  const DriverFunctions& driver = Driver();
  if (driver.get_device == nullptr || driver.retain == nullptr || driver.push == nullptr ||
      driver.pop == nullptr)
    return nullptr;
  static auto* const kContexts = new Contexts();
  const std::lock_guard<std::mutex> lock(kContexts->mutex);
  const auto at = static_cast<std::size_t>(device_id);
  if (kContexts->of_device.size() <= at) kContexts->of_device.resize(at + 1);
  if (kContexts->of_device[at] == nullptr) {
    int device = 0;
    if (driver.get_device(&device, device_id) != 0) return nullptr;
    if (driver.retain(&kContexts->of_device[at], device) != 0) return nullptr;
  }
  return kContexts->of_device[at];
}

}  // namespace

EnteredContext::EnteredContext(std::int32_t device_id) {
  void* const context = ContextOf(device_id);
  entered_ = context != nullptr && Driver().push(context) == 0;
}

EnteredContext::~EnteredContext() {
  void* own = nullptr;
  if (entered_) Driver().pop(&own);
}

bool IsRecorded(void* stream) {
  int status = 0;
  const DriverFunctions& driver = Driver();
  return driver.is_capturing != nullptr && driver.is_capturing(stream, &status) == 0 && status != 0;
}

}  // namespace rewire::kernel::cuda_libraries
