// SPDX-License-Identifier: Apache-2.0
// Public header: <rewire/vm/kernel/device_type.h>.
//
// Comparing devices. A file or a host may name a device type that DLPack's header does not know. Then
// DLDevice::device_type has no value of its enumeration, and reading it as one is undefined. So it is read
// here alone.
#pragma once

#include <dlpack/dlpack.h>

#include <cstdint>
#include <cstring>

namespace rewire {

// The number of a device's type.
inline std::int32_t DeviceTypeOf(const DLDevice& device) {
  static_assert(sizeof(device.device_type) == sizeof(std::int32_t));
  std::int32_t type;
  std::memcpy(&type, &device.device_type, sizeof(type));
  return type;
}

inline void SetDeviceType(DLDevice* device, std::int32_t type) {
  std::memcpy(&device->device_type, &type, sizeof(type));
}

inline DLDevice MakeDevice(std::int32_t type, std::int32_t id) {
  DLDevice device{kDLCPU, id};
  SetDeviceType(&device, type);
  return device;
}

inline bool IsHostDevice(const DLDevice& device) { return DeviceTypeOf(device) == kDLCPU; }

inline bool IsSameDevice(const DLDevice& a, const DLDevice& b) {
  return DeviceTypeOf(a) == DeviceTypeOf(b) && a.device_id == b.device_id;
}

}  // namespace rewire
