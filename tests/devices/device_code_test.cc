// SPDX-License-Identifier: Apache-2.0
//
// Device code of foreign libraries (vm/loader/device_code.h) on the device that REWIRE_TEST_DEVICE names.
#include "rewire/vm/loader/device_code.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "rewire/tests/devices/test_device.h"
#include "rewire/tests/vm/test_program.h"
#include "rewire/vm/devices.h"
#include "rewire/vm/host_function.h"
#include "rewire/vm/kernel/packed.h"
#include "rewire/vm/loader/kernel_api.h"
#include "rewire/vm/virtual_machine.h"

namespace rewire::test {
namespace {

constexpr DLDataType kAddress = {kDLOpaqueHandle, 64, 1};

std::uint64_t Bits(double value) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

// The test kernels as a library of TVM would have them. `scale` has its factor as a float and its count as an
// integer of 32 bits.
tvm::DeviceModule ModuleFor(const TestDevice& device, const std::string& source) {
  tvm::DeviceModule module;
  module.kind = device.api.name;
  module.format = module.kind == "cuda" ? "cuda" : "cl";
  module.kernels.push_back({"scale", {kAddress, kAddress, kFloat32, kInt32}, {"blockIdx.x", "threadIdx.x"}});
  module.code = {reinterpret_cast<const std::byte*>(source.data()), source.size()};
  return module;
}

std::string ErrorOf(const tvm::DeviceModule& module) {
  const Result<std::unique_ptr<DeviceCode>> code = DeviceCode::Make(module);
  return code ? "" : code.error().message();
}

// A host function of such a library: y = factor x.
struct Scale {
  const DeviceCode* code;
  double factor;
  std::int64_t group_threads = 64;
  std::int32_t values = 6;

  int operator()(kernel::TensorView x, kernel::TensorView y) const {
    ChooseLaunchDevice(DeviceTypeOf(y.device()), y.device().device_id);
    const auto count = static_cast<std::int64_t>(x.size());
    const std::uint64_t given[] = {reinterpret_cast<std::uintptr_t>(x.raw_data()),
                                   reinterpret_cast<std::uintptr_t>(y.raw_data()),
                                   Bits(factor),
                                   static_cast<std::uint64_t>(count),
                                   static_cast<std::uint64_t>((count + 63) / 64),
                                   static_cast<std::uint64_t>(group_threads)};
    return DeviceCode::Launch(*code->Find("scale"), given, values);
  }
};

VirtualMachine MachineOf(const TestDevice& device, const Scale& scale) {
  LinkOptions options;
  options.kernels.AddFunction("test.scale",
                              MakePackedFunction([scale](kernel::TensorView x, kernel::TensorView y) {
                                return scale(x, y) == 0 ? kernel::Status() : kernel::Status::AlreadySet();
                              }));
  return VirtualMachine(ProgramOf("    .device gpu = " + std::string(device.api.name) + R"(:0
    .kernel test.scale
    .func main(x: f32[n] on gpu) -> f32[n] on gpu
      %shape = shape_of %x
      %s = alloc_storage _, alignment=256, f32[256], gpu
      %y = alloc_tensor_reg %s, _, %shape, f32
      invoke_packed test.scale(%x, %y), outputs=1
      ret %y
    .end)",
                                  std::move(options)));
}

TEST_CASE("a library's device code runs on the VM's stream, with values as its host code passes them") {
  const TestDevice device;
  const std::string source = device.Source(kTestKernels);
  const Result<std::unique_ptr<DeviceCode>> code = DeviceCode::Make(ModuleFor(device, source));
  REQUIRE(code);
  CHECK((*code)->Find("scale") != nullptr);
  CHECK((*code)->Find("scal") == nullptr);
  for (const double factor : {2.0, -0.5}) {
    VirtualMachine vm = MachineOf(device, {code->get(), factor});
    for (const std::size_t count : {256, 100, 1}) {
      const Value x = Floats(Ramp(count));
      const Result<Value> result = vm.TryInvoke("main", {&x, 1});
      REQUIRE(MessageOf(result).empty());
      const Tensor y = *CopyToHost(result->tensor());
      CHECK(FloatsOf(y)[count - 1] == static_cast<float>(static_cast<double>(count) * factor));
    }
    CHECK(vm.device_waits().all() > 0);
  }
  // Nothing is launched for nothing.
  VirtualMachine vm = MachineOf(device, {code->get(), 2.0});
  const Value none = *Tensor::Make(kFloat32, {0});
  CHECK(MessageOf(vm.TryInvoke("main", {&none, 1})).empty());
}

TEST_CASE("a launch that cannot be says which kernel, what is given and what is expected") {
  const TestDevice device;
  const std::string source = device.Source(kTestKernels);
  const Result<std::unique_ptr<DeviceCode>> code = DeviceCode::Make(ModuleFor(device, source));
  REQUIRE(code);
  const Value x = Floats(Ramp(64));
  const auto error_of = [&](const Scale& scale) {
    VirtualMachine vm = MachineOf(device, scale);
    return MessageOf(vm.TryInvoke("main", {&x, 1}));
  };
  CHECK_THAT(error_of({code->get(), 1.0, 64, 5}),
             Catch::Contains("device kernel 'scale': it is given 5 values, expected 6"));
  CHECK_THAT(error_of({code->get(), 1.0, -1}),
             Catch::Contains("device kernel 'scale': its launch has a size below 0 or above 2^31"));
  CHECK(error_of({code->get(), 1.0, 1 << 20}) != "");  // the driver's words
  CHECK(error_of({code->get(), 1.0}) == "");

  const std::string wrong = "this is no code";
  const Result<std::unique_ptr<DeviceCode>> broken = DeviceCode::Make(ModuleFor(device, wrong));
  REQUIRE(broken);
  for (int i = 0; i < 2; ++i)
    CHECK_THAT(error_of({broken->get(), 1.0}), Catch::Contains("device kernel 'scale': device "));
}

TEST_CASE("device code that cannot be launched is refused when it is read") {
  const TestDevice device;
  tvm::DeviceModule module = ModuleFor(device, "");
  CHECK(ErrorOf(module).empty());
  module.kernels[0].launch_tags = {"tirx.use_dyn_shared_memory", "tir.use_programmtic_dependent_launch"};
  CHECK(ErrorOf(module).empty());
  module.kernels[0].launch_tags = {"vthread"};
  CHECK(ErrorOf(module) == "its device kernel 'scale' is launched with 'vthread', which is not known here");
  module.kernels[0].launch_tags = {};
  module.kernels[0].has_tensor_maps = true;
  CHECK(ErrorOf(module) == "its device kernel 'scale' takes tensor maps, which are not made here");
  module.kernels[0].has_tensor_maps = false;
  module.kernels[0].arguments = Array<DLDataType>(65, kInt32);
  CHECK(ErrorOf(module) == "its device kernel 'scale' has 65 arguments, expected at most 64");
  module.kernels.clear();
  module.format = "clbin";
  CHECK(ErrorOf(module) ==
        "its device code is of kind '" + module.kind + "', format 'clbin', which is not known here");
}

}  // namespace
}  // namespace rewire::test
