// SPDX-License-Identifier: Apache-2.0
//
// Every library of devices answers rewire_device_open by this. A library's State has
//   static constexpr const char* kKind                what its devices are called in messages
//   std::deque<Device> devices                        each with its `properties`
//   bool Open(std::string* reason)                    false, with the words for it, if there is none
//   static State& Of(void* context)
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>

#include "rewire/devices/support/words.h"
#include "rewire/vm/kernel/stream_work.h"

namespace rewire::devices {

template <typename State>
int CountDevices(void* context, std::int32_t* devices) {
  *devices = static_cast<std::int32_t>(State::Of(context).devices.size());
  return REWIRE_DEVICE_OK;
}

// Needs no context of the device, so none is made.
template <typename State>
int PropertiesOf(void* context, std::int32_t device_id, RewireDeviceProperties* properties) {
  const State& state = State::Of(context);
  if (device_id < 0 || static_cast<std::size_t>(device_id) >= state.devices.size())
    return NoDevice(State::kKind, device_id, state.devices.size());
  const auto& own = state.devices[static_cast<std::size_t>(device_id)].properties;
  const std::uint32_t size = properties->struct_size;
  std::memcpy(properties, &own, std::min<std::size_t>(size, sizeof(own)));
  properties->struct_size = size;
  return REWIRE_DEVICE_OK;
}

// Opens the library in the process' first call. `describe` fills in what the struct has beyond the functions
// above. Arguments and result are those of rewire_device_open.
template <typename State>
int OpenLibrary(void (*describe)(RewireStreamWorkApi* api), std::uint32_t version,
                const RewireDeviceApi** api, const char** reason) {
  struct Library {
    State state;
    RewireStreamWorkApi api{};
    std::string reason;
    bool is_open = false;
  };
  // Never destroyed: results on devices may outlive everything, and drivers end by themselves.
  static Library* const library = [describe] {
    auto* made = new Library();
    made->is_open = made->state.Open(&made->reason);
    made->api.device.struct_size = sizeof(made->api);
    made->api.device.context = &made->state;
    made->api.device.error = [](void*) { return LastWords(); };
    made->api.device.count = CountDevices<State>;
    made->api.device.properties = PropertiesOf<State>;
    describe(&made->api);
    return made;
  }();
  if (version != REWIRE_DEVICE_API_VERSION) {
    *reason = "the device library was built for another version of Rewire";
    return REWIRE_DEVICE_UNSUPPORTED;
  }
  *reason = library->reason.c_str();
  *api = library->is_open ? &library->api.device : nullptr;
  return library->is_open ? REWIRE_DEVICE_OK : REWIRE_DEVICE_UNSUPPORTED;
}

}  // namespace rewire::devices
