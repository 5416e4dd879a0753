// SPDX-License-Identifier: Apache-2.0
//
// Replaces load_library.cc in builds without dlopen.
#include "rewire/base/array.h"
#include "rewire/vm/devices.h"
#include "rewire/vm/loader/device_library.h"
#include "rewire/vm/loader/load_library.h"

namespace rewire {

namespace {

Status FailToLoad(const char* kind, const std::string& name, const char* instead) {
  return Fail(StatusCode::kUnsupported,
              "{} library '{}': this build of Rewire loads no libraries (REWIRE_WITH_DLOPEN is off); {}",
              kind, name, instead);
}

}  // namespace

Result<std::shared_ptr<const KernelSource>> LoadKernelLibrary(const std::string& name,
                                                              const Array<std::string>& /*directories*/) {
  return Forward(FailToLoad("kernel", name, "link the kernels in and add them with AddTable"));
}

const char* StockDeviceName(std::int32_t /*device_type*/) { return nullptr; }

Result<const DeviceApi*> OpenDevice(const std::string& name) {
  return Forward(FailToLoad("device", name, "give the device in LinkOptions::devices"));
}

}  // namespace rewire
