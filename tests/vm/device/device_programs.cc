// SPDX-License-Identifier: Apache-2.0
#include "rewire/tests/vm/device/device_programs.h"

#include <cstdint>
#include <cstring>

#include "rewire/tests/vm/test_program.h"
#include "rewire/vm/loader/kernel_api.h"
#include "rewire/vm/packed_function.h"

namespace rewire::test {
namespace {

// Adds one to each float of a tensor on the fake device.
int AddOne(void*, const RewireFFIAny* args, std::int32_t, RewireFFIAny*) {
  const DLTensor& from = *RewireTensorOf(&args[0]);
  const DLTensor& to = *RewireTensorOf(&args[1]);
  const RewireDeviceApi* api = nullptr;
  void* stream = nullptr;
  if (KernelApi()->device(to.device, &api, &stream) != 0) return -1;
  auto* device = static_cast<FakeDevice*>(api->context);
  std::int64_t count = 1;
  for (std::int32_t i = 0; i < from.ndim; ++i) count *= from.shape[i];
  const void* source = from.data;
  const void* target = to.data;
  const auto work = [=] {
    const auto bytes = static_cast<std::uint64_t>(count) * sizeof(float);
    unsigned char* in = device->Memory(source, bytes);
    unsigned char* out = device->Memory(target, bytes);
    for (std::int64_t i = 0; in != nullptr && out != nullptr && i < count; ++i) {
      float value;
      std::memcpy(&value, in + i * 4, 4);
      value += 1;
      std::memcpy(out + i * 4, &value, 4);
    }
    return true;
  };
  if (device->Give(stream, work) == REWIRE_DEVICE_OK) return 0;
  SetKernelError("RuntimeError", device->words.c_str());
  return -1;
}

// Adds one on the host.
int HostAddOne(void*, const RewireFFIAny* args, std::int32_t, RewireFFIAny*) {
  const DLTensor& from = *RewireTensorOf(&args[0]);
  const DLTensor& to = *RewireTensorOf(&args[1]);
  for (std::int64_t i = 0; i < from.shape[0]; ++i) {
    static_cast<float*>(to.data)[i] = static_cast<const float*>(from.data)[i] + 1;
  }
  return 0;
}

}  // namespace

LinkOptions WithDevice(const FakeDevice& device) {
  LinkOptions options;
  options.devices.push_back(&device.api);
  return options;
}

void AddDeviceKernel(KernelSet* kernels, const std::string& name) {
  kernels->AddFunction(name, Packed(AddOne));
}

LinkOptions WithKernels(const FakeDevice& device) {
  LinkOptions options = WithDevice(device);
  AddDeviceKernel(&options.kernels, "test.add_one");
  options.kernels.AddFunction("test.host_add_one", Packed(HostAddOne));
  return options;
}

}  // namespace rewire::test
