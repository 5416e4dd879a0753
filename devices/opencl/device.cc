// SPDX-License-Identifier: Apache-2.0
//
// The library's door: the struct of functions.
#include <cstring>
#include <mutex>

#include "rewire/devices/opencl/state.h"

namespace rewire::opencl {
namespace {

struct Opened {
  State state;
  RewireDeviceApi api{};
  std::string reason;
  bool ok = false;
};

int Count(void* context, std::int32_t* devices) {
  *devices = static_cast<std::int32_t>(State::Of(context).devices.size());
  return REWIRE_DEVICE_OK;
}

int Properties(void* context, std::int32_t device_id, RewireDeviceProperties* properties) {
  const Device* device = State::Of(context).Find({kDLOpenCL, device_id});
  if (device == nullptr) return REWIRE_DEVICE_FAILED;
  const std::uint32_t size = properties->struct_size;
  std::memcpy(properties, &device->properties, std::min<std::size_t>(size, sizeof(*properties)));
  properties->struct_size = size;
  return REWIRE_DEVICE_OK;
}

void Open(Opened* opened) {
  opened->ok = opened->state.Open(&opened->reason);
  RewireDeviceApi& api = opened->api;
  api.struct_size = sizeof(api);
  api.device_type = kDLOpenCL;
  api.name = "opencl";
  api.context = &opened->state;
  api.flags = REWIRE_DEVICE_HANDLES;
  api.error = [](void*) { return LastWords(); };
  api.count = Count;
  api.properties = Properties;
  AddMemory(&api);
  AddEvents(&api);
  AddModules(&api);
  AddRecording(&api);
}

}  // namespace
}  // namespace rewire::opencl

extern "C" __attribute__((visibility("default"))) int rewire_device_open(std::uint32_t version,
                                                                         const RewireDeviceApi** api,
                                                                         const char** reason) {
  using rewire::opencl::Opened;
  // Never destroyed: results on devices may outlive everything, and drivers end by themselves.
  static Opened* const opened = [] {
    auto* made = new Opened();
    rewire::opencl::Open(made);
    return made;
  }();
  if (version != REWIRE_DEVICE_API_VERSION) {
    *reason = "the device library was built for another version of Rewire";
    return REWIRE_DEVICE_UNSUPPORTED;
  }
  *reason = opened->reason.c_str();
  *api = opened->ok ? &opened->api : nullptr;
  return opened->ok ? REWIRE_DEVICE_OK : REWIRE_DEVICE_UNSUPPORTED;
}
