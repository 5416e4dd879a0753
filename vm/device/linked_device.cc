// SPDX-License-Identifier: Apache-2.0
#include "rewire/vm/device/linked_device.h"

#include <cstddef>
#include <memory>
#include <string_view>

#include "rewire/base/message.h"
#include "rewire/vm/devices.h"
#include "rewire/vm/value.h"

namespace rewire {

Status DeviceFailure(const DeviceApi& api, DLDevice device, int code) {
  const char* words = api.error(api.context);
  const std::string_view text = words != nullptr && *words != 0 ? words : "the driver gives no reason";
  const bool memory = code == REWIRE_DEVICE_NO_MEMORY;
  const bool lost = code == REWIRE_DEVICE_LOST;
  return Fail(memory ? StatusCode::kOutOfMemory : StatusCode::kRuntimeFailed, "device {}:{}{}: {}", api.name,
              device.device_id, lost ? " is lost" : "", text);
}

bool IsWholeDevice(const DeviceApi& api) {
  const bool needed = api.struct_size >= offsetof(RewireDeviceApi, is_pinned) && api.name != nullptr &&
                      api.error != nullptr && api.allocate != nullptr && api.deallocate != nullptr &&
                      api.copy != nullptr && api.synchronize != nullptr;
  if (!needed) return false;
  const auto all_or_none = [](auto... members) {
    const int given = (0 + ... + int{members != nullptr});
    return given == 0 || given == int{sizeof...(members)};
  };
  return all_or_none(api.make_stream, api.destroy_stream) &&
         all_or_none(api.make_event, api.destroy_event, api.record_event, api.wait_event, api.query_event,
                     api.synchronize_event) &&
         all_or_none(api.load_module, api.unload_module, api.find_kernel, api.launch) &&
         all_or_none(api.begin_recording, api.end_recording, api.replay, api.destroy_recording) &&
         all_or_none(api.allocate_host, api.deallocate_host) &&
         (!HasHandles(api) ||
          (api.import_handle != nullptr && api.release_handle != nullptr && api.find_handle != nullptr));
}

int AllocateBlock(const DeviceApi& api, DLDevice device, std::uint64_t bytes, std::uint64_t alignment,
                  const char* scope, void* stream, void** block) {
  if (scope == kPinned) return api.allocate_host(api.context, device, bytes, block);
  return api.allocate(api.context, device, bytes, alignment, scope, stream, block);
}

int FreeBlock(const DeviceApi& api, DLDevice device, const char* scope, void* stream, void* block) {
  if (scope == kPinned) return api.deallocate_host(api.context, device, block);
  return api.deallocate(api.context, device, block, stream);
}

std::shared_ptr<const void> OwnerOf(const DeviceApi& api, DLDevice device, Held what, void* held) {
  return {held, [&api, device, what](void* memory) {
            if (what == Held::kHandle) {
              api.release_handle(api.context, device, memory);
            } else {
              api.deallocate(api.context, device, memory, nullptr);
            }
          }};
}

bool IsPinned(const DeviceApi& api, DLDevice device, const void* memory, std::uint64_t bytes) {
  std::int32_t pinned = 0;
  return api.struct_size >= sizeof(RewireDeviceApi) && api.is_pinned != nullptr &&
         api.is_pinned(api.context, device, memory, bytes, &pinned) == REWIRE_DEVICE_OK && pinned != 0;
}

}  // namespace rewire
