// SPDX-License-Identifier: Apache-2.0
//
// A program whose kernel launches code of a test's own module.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "rewire/tests/devices/test_device.h"
#include "rewire/tests/vm/test_program.h"
#include "rewire/vm/host_function.h"
#include "rewire/vm/kernel/tensor_view.h"
#include "rewire/vm/loader/kernel_api.h"

namespace rewire::test {

// main gives 2 x of f32[count] on the device, to and from the host. The module, which holds kTestKernels,
// must outlive the program.
inline Program TwiceProgram(const TestDevice& device, const DeviceModule& module, std::int64_t count) {
  LinkOptions options;
  options.kernels.AddFunction(
      "test.twice", MakePackedFunction([&module](kernel::TensorView x, kernel::TensorView y) {
        const RewireDeviceApi* api = nullptr;
        void* stream = nullptr;
        if (KernelApi()->device(y.device(), &api, &stream) != 0) return kernel::Status::AlreadySet();
        const auto size = static_cast<std::int32_t>(x.size());
        void* from = const_cast<void*>(x.raw_data());
        void* to = const_cast<void*>(y.raw_data());
        if (module.LaunchOn(stream, "scale", (size + 63) / 64, 64, from, to, 2.0f, size)) {
          return kernel::Status();
        }
        return kernel::RuntimeError(api->error(api->context));
      }));
  const std::string type = "f32[" + std::to_string(count) + "]";
  return ProgramOf("    .device gpu = " + std::string(device.api.name) + R"(:0
    .kernel test.twice
    .func main(x: )" + type +
                       ") -> " + type + R"(
      %d = device_copy %x, cpu, gpu
      %s = alloc_storage _, alignment=256, )" +
                       type + R"(, gpu
      %a = alloc_tensor %s, _, )" +
                       type + R"(
      invoke_packed test.twice(%d, %a), outputs=1
      %h = device_copy %a, gpu, cpu
      ret %h
    .end)",
                   std::move(options));
}

}  // namespace rewire::test
