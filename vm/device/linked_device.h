// SPDX-License-Identifier: Apache-2.0
//
// An entry of an executable's device table, resolved, and the words for what goes wrong on devices.
#pragma once

#include <cstdint>
#include <memory>

#include "rewire/base/status.h"
#include "rewire/vm/kernel/device_api.h"
#include "rewire/vm/kernel/device_type.h"
#include "rewire/vm/tensor.h"

namespace rewire {

// In place of a memory scope: memory of the host that the device has allocated, because it copies to it
// without a detour. Tensors there are tensors of the host.
inline constexpr const char* kPinned = nullptr;

struct LinkedDevice {
  DLDevice device = kHost;
  const DeviceApi* api = nullptr;  // null for the host
  const char* scope = "";          // memory scope; the executable's string. kPinned: memory of the host
  std::uint32_t stream = 0;        // the stream of a VM that work on this device uses (DeviceStreams)

  // The device of tensors there.
  DLDevice tensor_device() const { return scope == kPinned ? kHost : device; }
};

// A copy of at least so many bytes from a device goes to pinned memory. Smaller ones are as fast anyway.
inline constexpr std::uint64_t kLeastPinned = 1025;
// True if the device pins memory of the host for such a copy.
inline bool PinsFor(const DeviceApi& api, std::uint64_t bytes) {
  return api.allocate_host != nullptr && bytes >= kLeastPinned;
}

inline bool IsHostAddressable(const DeviceApi& api) {
  return (api.flags & REWIRE_DEVICE_HOST_ADDRESSABLE) != 0;
}

// The failure that `code` stands for, with the driver's words: "cuda:0: CUDA_ERROR_OUT_OF_MEMORY (...)".
Status DeviceFailure(const DeviceApi& api, DLDevice device, int code);

// Takes and frees memory of a device, or memory of the host that the device pins, as `scope` says. Both
// return the device's code.
int AllocateBlock(const DeviceApi& api, DLDevice device, std::uint64_t bytes, std::uint64_t alignment,
                  const char* scope, void* stream, void** block);
int FreeBlock(const DeviceApi& api, DLDevice device, const char* scope, void* stream, void* block);

// Owns a block of the device's memory, or an address that the device has given for a handle.
enum class Held : std::uint8_t { kBlock, kHandle };
std::shared_ptr<const void> OwnerOf(const DeviceApi& api, DLDevice device, Held what, void* held);

// Whether the device copies to this memory of the host without a detour. Not known counts as no.
bool IsPinned(const DeviceApi& api, DLDevice device, const void* memory, std::uint64_t bytes);

inline bool HasHandles(const DeviceApi& api) { return (api.flags & REWIRE_DEVICE_HANDLES) != 0; }

// True if the struct has all that every device must have, and the groups that it begins are whole.
bool IsWholeDevice(const DeviceApi& api);

}  // namespace rewire
