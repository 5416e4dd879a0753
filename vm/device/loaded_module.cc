// SPDX-License-Identifier: Apache-2.0
#include "rewire/vm/device/loaded_module.h"

#include <cstdlib>

#include "rewire/vm/device/linked_device.h"

namespace rewire {

Result<std::shared_ptr<const LoadedModule>> LoadedModule::Load(const DeviceApi& api, DLDevice device,
                                                               std::uint32_t form,
                                                               Span<const std::byte> code) {
  if (api.load_module == nullptr) {
    return Fail(StatusCode::kUnsupported, "device {}:{} takes no device code", api.name, device.device_id);
  }
  void* module = nullptr;
  const int failed = api.load_module(api.context, device, form, code.data(), code.size(), "",
                                     std::getenv("REWIRE_DEVICE_CACHE"), &module);
  if (failed != REWIRE_DEVICE_OK) return Forward(DeviceFailure(api, device, failed));
  return std::shared_ptr<const LoadedModule>(new LoadedModule(api, device, module));
}

Result<void*> LoadedModule::Find(const char* name) const {
  void* found = nullptr;
  const int failed = api_.find_kernel(api_.context, device_, module_, name, &found);
  if (failed != REWIRE_DEVICE_OK) return Forward(DeviceFailure(api_, device_, failed));
  return found;
}

}  // namespace rewire
