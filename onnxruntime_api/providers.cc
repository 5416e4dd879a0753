// SPDX-License-Identifier: Apache-2.0
//
// Sessions run on the CPU: there is one provider, and one device.
#include <cstdlib>
#include <cstring>

#include "rewire/onnxruntime_api/allocator.h"
#include "rewire/onnxruntime_api/functions.h"
#include "rewire/onnxruntime_api/key_value_pairs.h"
#include "rewire/onnxruntime_api/status.h"

struct OrtHardwareDevice {
  OrtKeyValuePairs metadata;
};
struct OrtEpDevice {
  OrtHardwareDevice hardware;
  OrtKeyValuePairs metadata;
  OrtKeyValuePairs options;
};

namespace rewire::onnxruntime_api {
namespace {

constexpr char kProvider[] = "CPUExecutionProvider";

const OrtEpDevice* TheDevice() {
  static const OrtEpDevice* const device = new OrtEpDevice;
  return device;
}

OrtStatus* FillDevices(const OrtEpDevice** out, std::size_t count) noexcept {
  return Guard([&]() -> OrtStatus* {
    for (std::size_t i = 0; i < count; ++i) out[i] = TheDevice();
    return nullptr;
  });
}
OrtStatus* FillMemory(const OrtMemoryInfo** out, std::size_t count) noexcept {
  return Guard([&]() -> OrtStatus* {
    for (std::size_t i = 0; i < count; ++i) out[i] = &HostMemory();
    return nullptr;
  });
}

}  // namespace

OrtStatus* GetAvailableProviders(char*** out, int* count) noexcept {
  return Guard([&]() -> OrtStatus* {
    char* const name = strdup(kProvider);
    char** const list = static_cast<char**>(std::malloc(sizeof(char*)));
    if (name == nullptr || list == nullptr) {
      std::free(name);
      std::free(list);
      return OutOfMemory();
    }
    *list = name;
    *out = list;
    *count = 1;
    return nullptr;
  });
}
OrtStatus* ReleaseAvailableProviders(char** providers, int count) noexcept {
  if (providers != nullptr) {
    for (int i = 0; i < count; ++i) std::free(providers[i]);
  }
  std::free(providers);
  return nullptr;
}

OrtStatus* SessionOptionsAppendExecutionProvider(OrtSessionOptions*, const char* provider, const char* const*,
                                                 const char* const*, std::size_t) noexcept {
  return Guard([&]() -> OrtStatus* {
    if (std::strcmp(provider, "CPU") == 0 || std::strcmp(provider, kProvider) == 0) return nullptr;
    return InvalidArgument("Unknown provider name '" + std::string(provider) +
                           "': Rewire's libonnxruntime has CPUExecutionProvider alone");
  });
}
OrtStatus* SessionOptionsAppendExecutionProvider_V2(OrtSessionOptions*, OrtEnv*, const OrtEpDevice* const*,
                                                    std::size_t, const char* const*, const char* const*,
                                                    std::size_t) noexcept {
  return nullptr;  // there is only the one device to choose
}
OrtStatus* SessionOptionsSetEpSelectionPolicy(OrtSessionOptions*, int) noexcept { return nullptr; }
OrtStatus* SessionOptionsSetEpSelectionPolicyDelegate(OrtSessionOptions*, void*, void*) noexcept {
  return nullptr;
}

OrtStatus* GetEpDevices(const OrtEnv*, const OrtEpDevice* const** devices, std::size_t* count) noexcept {
  return Guard([&]() -> OrtStatus* {
    static const OrtEpDevice* const list[] = {TheDevice()};
    *devices = list;
    *count = 1;
    return nullptr;
  });
}
OrtStatus* GetNumHardwareDevices(const OrtEnv*, std::size_t* out) noexcept {
  *out = 1;
  return nullptr;
}
OrtStatus* GetHardwareDevices(const OrtEnv*, const OrtHardwareDevice** devices, std::size_t count) noexcept {
  return Guard([&]() -> OrtStatus* {
    if (count < 1) return InvalidArgument("there is 1 hardware device, given room for 0");
    devices[0] = &TheDevice()->hardware;
    return nullptr;
  });
}
OrtStatus* SessionGetMemoryInfoForInputs(const OrtSession*, const OrtMemoryInfo** out,
                                         std::size_t count) noexcept {
  return FillMemory(out, count);
}
OrtStatus* SessionGetMemoryInfoForOutputs(const OrtSession*, const OrtMemoryInfo** out,
                                          std::size_t count) noexcept {
  return FillMemory(out, count);
}
OrtStatus* SessionGetEpDeviceForInputs(const OrtSession*, const OrtEpDevice** out,
                                       std::size_t count) noexcept {
  return FillDevices(out, count);
}
OrtStatus* SessionGetEpDeviceForOutputs(const OrtSession*, const OrtEpDevice** out,
                                        std::size_t count) noexcept {
  return FillDevices(out, count);
}

OrtHardwareDeviceType HardwareDevice_Type(const OrtHardwareDevice*) noexcept {
  return OrtHardwareDeviceType_CPU;
}
std::uint32_t HardwareDevice_VendorId(const OrtHardwareDevice*) noexcept { return 0; }
const char* HardwareDevice_Vendor(const OrtHardwareDevice*) noexcept { return ""; }
std::uint32_t HardwareDevice_DeviceId(const OrtHardwareDevice*) noexcept { return 0; }
const OrtKeyValuePairs* HardwareDevice_Metadata(const OrtHardwareDevice* device) noexcept {
  return &device->metadata;
}
const char* EpDevice_EpName(const OrtEpDevice*) noexcept { return kProvider; }
const char* EpDevice_EpVendor(const OrtEpDevice*) noexcept { return "Rewire"; }
const OrtKeyValuePairs* EpDevice_EpMetadata(const OrtEpDevice* device) noexcept { return &device->metadata; }
const OrtKeyValuePairs* EpDevice_EpOptions(const OrtEpDevice* device) noexcept { return &device->options; }
const OrtHardwareDevice* EpDevice_Device(const OrtEpDevice* device) noexcept { return &device->hardware; }
const OrtMemoryInfo* EpDevice_MemoryInfo(const OrtEpDevice*, OrtDeviceMemoryType) noexcept {
  return &HostMemory();
}

}  // namespace rewire::onnxruntime_api
