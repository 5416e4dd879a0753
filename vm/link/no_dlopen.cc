// SPDX-License-Identifier: Apache-2.0
//
// Replaces loader/load_library.cc, loader/device_library.cc and link_device_code.cc in builds without dlopen.
#include "rewire/base/array.h"
#include "rewire/vm/devices.h"
#include "rewire/vm/link/link_device_code.h"
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

Status AllowDeviceCode(const Module& module, const LinkOptions& /*options*/) {
  if (module.device_kernels.empty()) return {};
  return FailToLoad("device code, kernel", module.device_kernels[0].name, "compile the model for the host");
}

const DeviceKernelEntry* DeviceCodeLinker::Find(std::string_view /*name*/) const { return nullptr; }

Result<PackedFunction> DeviceCodeLinker::Make(const DeviceKernelEntry& kernel,
                                              const KernelImport& /*import*/) {
  return Fail(StatusCode::kUnsupported, "kernel '{}'", kernel.name);
}

}  // namespace rewire
