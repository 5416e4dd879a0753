// SPDX-License-Identifier: Apache-2.0
//
// An entry of an executable's device table, resolved, and the words for what goes wrong on devices.
#pragma once

#include "rewire/base/status.h"
#include "rewire/vm/kernel/device_api.h"
#include "rewire/vm/kernel/device_type.h"
#include "rewire/vm/tensor.h"

namespace rewire {

struct LinkedDevice {
  DLDevice device = kHost;
  const DeviceApi* api = nullptr;  // null for the host
  const char* scope = "";          // memory scope; the executable's string
  std::uint32_t stream = 0;        // the stream of a VM that work on this device uses (DeviceStreams)
};

inline bool IsHostAddressable(const DeviceApi& api) {
  return (api.flags & REWIRE_DEVICE_HOST_ADDRESSABLE) != 0;
}

// The failure that `code` stands for, with the driver's words: "cuda:0: CUDA_ERROR_OUT_OF_MEMORY (...)".
Status DeviceFailure(const DeviceApi& api, DLDevice device, int code);

inline bool HasHandles(const DeviceApi& api) { return (api.flags & REWIRE_DEVICE_HANDLES) != 0; }

// For a device whose tensors have the driver's handles: the tensor with an address in place of its handle,
// which it holds. Empty if it has an address already.
Result<Tensor> ImportHandle(const DeviceApi& api, const TensorView& view);

// True if the struct has all that every device must have, and the groups that it begins are whole.
bool IsWholeDevice(const DeviceApi& api);

}  // namespace rewire
