// SPDX-License-Identifier: Apache-2.0
//
// CUDA's current context is the host's, and a kernel's limit of shared memory is all threads'.
#include <catch2/catch.hpp>
#include <cstdint>
#include <vector>

#include "rewire/tests/devices/current_context.h"
#include "rewire/tests/devices/faulty_driver.h"
#include "rewire/tests/devices/test_device.h"
#include "rewire/tests/devices/twice_kernel.h"
#include "rewire/vm/virtual_machine.h"

namespace rewire::test {
namespace {

TEST_CASE("the context that a host has made current stays so, whatever is done") {
  const TestDevice device;
  if (device.api.device_type != kDLCUDA) return;  // OpenCL has no current context
  const cuda::CudaDriver& driver = OpenCudaDriver();
  int devices = 0;
  REQUIRE(driver.cuDeviceGetCount(&devices) == cuda::CUDA_SUCCESS);
  cuda::CUdevice other = 0;
  REQUIRE(driver.cuDeviceGet(&other, devices - 1) == cuda::CUDA_SUCCESS);
  cuda::CUcontext context = nullptr;
  REQUIRE(driver.cuDevicePrimaryCtxRetain(&context, other) == cuda::CUDA_SUCCESS);
  for (const cuda::CUcontext hosts : {cuda::CUcontext{nullptr}, context}) {
    REQUIRE(driver.cuCtxSetCurrent(hosts) == cuda::CUDA_SUCCESS);
    const auto stays = [hosts] { return CurrentCudaContext() == hosts; };
    {
      const DeviceModule module(device, kTestKernels);
      CHECK(stays());
      std::vector<float> x = Ramp(512);
      std::vector<float> y(512);
      VirtualMachine vm(TwiceProgram(device, module, 512));
      CHECK(stays());
      vm.SetInput("x", TensorView(x.data(), {512}));
      vm.SetOutput(0, TensorView(y.data(), {512}));
      vm.Invoke();
      CHECK(y[511] == 1024);
      CHECK(stays());
      vm.InvokeAsync();
      CHECK(stays());
      vm.Wait();
      CHECK(stays());
      vm.Record();
      vm.Invoke();
      CHECK(stays());
      vm.Trim();
      CHECK(stays());
    }
    CHECK(stays());
  }
  REQUIRE(driver.cuCtxSetCurrent(nullptr) == cuda::CUDA_SUCCESS);
  CHECK(driver.cuDevicePrimaryCtxRelease(other) == cuda::CUDA_SUCCESS);
}

TEST_CASE("a launch only raises what its kernel may have of shared memory") {
  simulated_cuda::Control control;
  if (!FindSimulatedCuda(&control)) return;
  const TestDevice device;
  const DeviceModule module(device, kTestKernels);
  const DeviceMemory memory(device, 64);
  const RewireDeviceApi& api = device.api;
  void* kernel = nullptr;
  REQUIRE(api.find_kernel(api.context, device.id, module.module, "scale", &kernel) == REWIRE_DEVICE_OK);
  float factor = 2;
  std::int32_t count = 0;
  void* address = memory.at(0);
  std::vector<RewireLaunchArgument> arguments(4);
  for (const int i : {0, 1}) {
    arguments[i].kind = REWIRE_LAUNCH_ADDRESS;
    arguments[i].u.address = address;
  }
  arguments[2] = {REWIRE_LAUNCH_VALUE, 4, {}};
  arguments[2].u.value = &factor;
  arguments[3] = {REWIRE_LAUNCH_VALUE, 4, {}};
  arguments[3].u.value = &count;
  const std::uint64_t before = control.CountCalls("cuFuncSetAttribute");
  // Another thread may be between its own raise and its launch, at any of these.
  for (const std::uint32_t kib : {16U, 64U, 50U, 64U, 16U, 80U, 64U}) {
    const RewireLaunch launch{kernel, {1, 1, 1}, {1, 1, 1}, kib << 10, 4, arguments.data()};
    CHECK(api.launch(api.context, device.id, &launch, device.stream) == REWIRE_DEVICE_OK);
  }
  CHECK(control.CountCalls("cuFuncSetAttribute") - before == 2);
  CHECK(device.Wait());
}

}  // namespace
}  // namespace rewire::test
