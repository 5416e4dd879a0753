// SPDX-License-Identifier: Apache-2.0
//
// One device with a stream of its own, memory and modules on it, for tests of device libraries.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <initializer_list>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "rewire/vm/devices.h"
#include "rewire/vm/tensor.h"

namespace rewire::test {

inline constexpr char kTestKernels[] = R"(
KERNEL(scale)(GLOBAL const float* x, GLOBAL float* y, float factor, int count) {
  int i = GLOBAL_ID(0);
  if (i < count) y[i] = x[i] * factor;
}
// Each group of 64 adds its elements up.
KERNEL(group_sums)(GLOBAL const float* x, GLOBAL float* sums) {
  SHARED float part[64];
  int lane = LOCAL_ID(0);
  part[lane] = x[GLOBAL_ID(0)];
  BARRIER();
  for (int step = 32; step > 0; step /= 2) {
    if (lane < step) part[lane] += part[lane + step];
    BARRIER();
  }
  if (lane == 0) sums[GROUP_ID(0)] = part[0];
}
)";

// 1, 2, 3, ...
inline std::vector<float> Ramp(std::size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 1.0f);
  return values;
}

// The library under test: "opencl" or "cuda".
inline std::string DeviceName() {
  const char* name = std::getenv("REWIRE_TEST_DEVICE");
  return name != nullptr ? name : "opencl";
}

class TestDevice {
 public:
  TestDevice() : api(**OpenDevice(DeviceName())), id{static_cast<DLDeviceType>(api.device_type), 0} {
    if (api.make_stream(api.context, id, &stream) != REWIRE_DEVICE_OK) {
      throw std::runtime_error(api.error(api.context));
    }
  }
  ~TestDevice() { api.destroy_stream(api.context, id, stream); }
  TestDevice(const TestDevice&) = delete;
  TestDevice& operator=(const TestDevice&) = delete;

  bool Copy(void* to, const void* from, std::uint64_t bytes) const {
    return api.copy(api.context, to, id, from, kHost, bytes, stream) == REWIRE_DEVICE_OK;
  }
  bool Back(void* to, const void* from, std::uint64_t bytes) const {
    return api.copy(api.context, to, kHost, from, id, bytes, stream) == REWIRE_DEVICE_OK;
  }
  bool Within(void* to, const void* from, std::uint64_t bytes) const {
    return api.copy(api.context, to, id, from, id, bytes, stream) == REWIRE_DEVICE_OK;
  }
  bool Wait() const { return api.synchronize(api.context, id, stream) == REWIRE_DEVICE_OK; }

  RewireDeviceProperties properties() const {
    RewireDeviceProperties is{};
    is.struct_size = sizeof(is);
    api.properties(api.context, id.device_id, &is);
    return is;
  }

  // Source text of the tests' kernels in the device's language.
  std::string Source(const std::string& kernels) const {
    const bool cuda = api.device_type == kDLCUDA;
    return (cuda ? R"(
#define KERNEL(name) extern "C" __global__ void name
#define GLOBAL
#define SHARED __shared__
#define BARRIER() __syncthreads()
#define LOCAL_ID(i) ((int)threadIdx.x)
#define GROUP_ID(i) ((int)blockIdx.x)
#define GLOBAL_ID(i) ((int)(blockIdx.x * blockDim.x + threadIdx.x))
)"
                 : R"(
#define KERNEL(name) __kernel void name
#define GLOBAL __global
#define SHARED __local
#define BARRIER() barrier(CLK_LOCAL_MEM_FENCE)
#define LOCAL_ID(i) ((int)get_local_id(i))
#define GROUP_ID(i) ((int)get_group_id(i))
#define GLOBAL_ID(i) ((int)get_global_id(i))
)") + kernels;
  }
  int Load(const std::string& source, const char* cache, void** module) const {
    const std::uint32_t form =
        api.device_type == kDLCUDA ? REWIRE_DEVICE_CODE_CUDA_CPP : REWIRE_DEVICE_CODE_OPENCL_C;
    return api.load_module(api.context, id, form, source.data(), source.size(), "", cache, module);
  }

  const RewireDeviceApi& api;
  DLDevice id;
  void* stream = nullptr;
};

class DeviceMemory {
 public:
  DeviceMemory(const TestDevice& device, std::uint64_t bytes) : device_(device) {
    const RewireDeviceApi& api = device.api;
    // The memory is there in the stream's order. Other streams may use it after the wait.
    if (api.allocate(api.context, device.id, bytes, 256, "", device.stream, &block_) != REWIRE_DEVICE_OK ||
        !device.Wait()) {
      throw std::runtime_error(api.error(api.context));
    }
  }
  ~DeviceMemory() { device_.api.deallocate(device_.api.context, device_.id, block_, device_.stream); }
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  void* at(std::uint64_t offset) const { return static_cast<char*>(block_) + offset; }

 private:
  const TestDevice& device_;
  void* block_ = nullptr;
};

class DeviceModule {
 public:
  DeviceModule(const TestDevice& device, const char* kernels, const char* cache = nullptr) : device_(device) {
    if (device.Load(device.Source(kernels), cache, &module) != REWIRE_DEVICE_OK) {
      throw std::runtime_error(device.api.error(device.api.context));
    }
  }
  ~DeviceModule() { device_.api.unload_module(device_.api.context, device_.id, module); }
  DeviceModule(const DeviceModule&) = delete;
  DeviceModule& operator=(const DeviceModule&) = delete;

  template <typename... Arguments>
  bool Launch(const char* kernel, std::uint32_t groups, std::uint32_t threads, Arguments... arguments) const {
    return LaunchOn(device_.stream, kernel, groups, threads, arguments...);
  }
  // Pointers are addresses on the device; everything else is a value.
  template <typename... Arguments>
  bool LaunchOn(void* stream, const char* name, std::uint32_t groups, std::uint32_t threads,
                Arguments... arguments) const {
    const RewireDeviceApi& api = device_.api;
    void* kernel = nullptr;
    if (api.find_kernel(api.context, device_.id, module, name, &kernel) != REWIRE_DEVICE_OK) return false;
    const std::vector<RewireLaunchArgument> list{ArgumentOf(arguments)...};
    const RewireLaunch launch{
        kernel, {groups, 1, 1}, {threads, 1, 1}, 0, static_cast<std::uint32_t>(list.size()), list.data()};
    return api.launch(api.context, device_.id, &launch, stream) == REWIRE_DEVICE_OK;
  }

  void* module = nullptr;

 private:
  static RewireLaunchArgument ArgumentOf(void* const& address) {
    RewireLaunchArgument argument{};
    argument.kind = REWIRE_LAUNCH_ADDRESS;
    argument.u.address = address;
    return argument;
  }
  template <typename T>
  static RewireLaunchArgument ArgumentOf(const T& value) {
    RewireLaunchArgument argument{};
    argument.kind = REWIRE_LAUNCH_VALUE;
    argument.bytes = sizeof(value);
    argument.u.value = &value;
    return argument;
  }

  const TestDevice& device_;
};

}  // namespace rewire::test
