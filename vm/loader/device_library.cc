// SPDX-License-Identifier: Apache-2.0
#include "rewire/vm/loader/device_library.h"

#include <dlfcn.h>

#include <cstring>

#include "rewire/vm/device/linked_device.h"
#include "rewire/vm/devices.h"
#include "rewire/vm/loader/library_search.h"

namespace rewire {
namespace {

Result<const DeviceApi*> OpenFile(const std::string& path) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return Fail(StatusCode::kLinkFailed, "{} cannot be opened: {}", path, dlerror());
  }
  const auto open = reinterpret_cast<RewireDeviceOpen>(dlsym(library, "rewire_device_open"));
  if (open == nullptr) {
    dlclose(library);
    return Fail(StatusCode::kLinkFailed, "{} is no device library: it has no function rewire_device_open",
                path);
  }
  // The library stays open from here on.
  const DeviceApi* api = nullptr;
  const char* reason = "";
  if (open(REWIRE_DEVICE_API_VERSION, &api, &reason) != REWIRE_DEVICE_OK) {
    return Fail(StatusCode::kLinkFailed, "{}", reason);
  }
  if (IsWholeDevice(*api)) return api;
  return Fail(StatusCode::kLinkFailed, "{} lacks functions that every device has", path);
}

}  // namespace

const char* StockDeviceName(std::int32_t device_type) {
  switch (device_type) {
    case kDLOpenCL:
      return "opencl";
    case kDLCUDA:
      return "cuda";
    default:
      return nullptr;
  }
}

Result<const DeviceApi*> OpenDevice(const std::string& name) {
  if (name.find('/') != std::string::npos) {
    if (!FileExists(name)) return Fail(StatusCode::kNotFound, "there is no file {}", name);
    return OpenFile(name);
  }
  const std::string file = Format("librewire_device_{}.so", name);
  std::string tried;
  const std::string path = FindFile(ModuleDirectories(), file, &tried);
  if (!path.empty()) return OpenFile(path);
  return Fail(StatusCode::kNotFound, "{} is not installed", file);
}

}  // namespace rewire
