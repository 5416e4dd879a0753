// SPDX-License-Identifier: Apache-2.0
// Programs that use a second device: copies go through its DeviceApi alone.
#include <catch2/catch.hpp>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "rewire/tests/vm/fake_device.h"
#include "rewire/tests/vm/test_program.h"
#include "rewire/vm/packed_function.h"
#include "rewire/vm/run/kernel_api.h"

namespace rewire::test {
namespace {

LinkOptions With(const FakeDevice& device) {
  LinkOptions options;
  options.devices.push_back(&device.api);
  return options;
}

constexpr char kRoundTrip[] = R"(
  .device fake = ext_dev:0
  .const c: f32[3] on fake = {7, 8, 9}
  .func main(x: f32[3]) -> f32[3]
    %d = device_copy %x, cpu, fake
    %shape = shape_of %d
    %v = reshape_tensor %d, %shape
    %e = device_copy %v, fake, fake
    %h = device_copy %e, fake, cpu
    ret %h
  .end
  .func constant() -> f32[3]
    %c = load_const c
    %h = device_copy %c, fake, cpu
    ret %h
  .end
  .func branch(n: i64[]) -> value
    %d = device_copy %n, cpu, fake
    %one = load_consti 1
    if %d == %one goto yes else no
  yes:
    ret %one
  no:
    %s = alloc_storage %d, alignment=64, u8, fake
    %t = alloc_tensor_reg %s, _, %d, u8
    ret %t
  .end
  .func wrong(x: value) -> value
    %d = device_copy %x, fake, cpu
    ret %d
  .end)";

Tensor Scalar(std::int64_t value) {
  Tensor tensor = *Tensor::Make(kInt64, {});
  *tensor.data<std::int64_t>() = value;
  return tensor;
}

TEST_CASE("tensors go to a device and back; shapes and branches read it through copies") {
  FakeDevice device;
  {
    VirtualMachine vm(ProgramOf(kRoundTrip, With(device)));
    const Value x = Floats({1, 2, 3});
    for (int i = 0; i < 3; ++i) {
      CHECK(FloatsOf(vm.TryInvoke("main", {&x, 1})->tensor()) == std::vector<float>{1, 2, 3});
    }
    const std::size_t blocks = device.blocks.size();
    REQUIRE(MessageOf(vm.TryInvoke("main", {&x, 1})).empty());
    CHECK(device.blocks.size() == blocks);  // reused
    REQUIRE(MessageOf(vm.TryInvoke("constant")).empty());
    CHECK(FloatsOf(vm.result().tensor()) == std::vector<float>{7, 8, 9});
    const Value one = Scalar(1);
    const Value five = Scalar(5);
    CHECK(vm.TryInvoke("branch", {&one, 1})->integer() == 1);
    const Tensor made = vm.TryInvoke("branch", {&five, 1})->tensor();
    CHECK(made.dl().device.device_type == kDLExtDev);
    CHECK(made.shape()[0] == 5);
    CHECK(MessageOf(vm.TryInvoke("wrong", {&x, 1}))
              .find("the tensor is on device 1:0, the instruction copies "
                    "from 12:0") != std::string::npos);
  }
  CHECK(device.blocks.empty());
}

TEST_CASE("an input on another device than the signature's is copied there when it is set") {
  FakeDevice device;
  const LinkOptions options = With(device);
  VirtualMachine vm(ProgramOf(R"(
    .device fake = ext_dev:0
    .func main(x: f32[3] on fake) -> f32[3]
      %h = device_copy %x, fake, cpu
      ret %h
    .end
    .func back(x: f32[3]) -> f32[3]
      ret %x
    .end
    .func away(x: f32[3]) -> f32[3] on fake
      %d = device_copy %x, cpu, fake
      ret %d
    .end)",
                              options));
  const auto reason = [&vm](InputHandle input) { return vm.TryInputReport(input)->reason; };
  float x[6] = {1, 0, 2, 0, 3, 0};
  const std::vector<std::int64_t> shape = {3};
  const std::vector<std::int64_t> strides = {2};
  vm.SetInput("x", TensorView(x, kFloat32, shape, kHost, strides));
  x[0] = 100;  // the host's again
  vm.Invoke();
  CHECK(FloatsOf(vm.Output()) == std::vector<float>{1, 2, 3});
  CHECK(reason({0, 0}) == "the memory is on another device");
  vm.SetInput("x", Floats({4, 5, 6}));
  vm.Invoke();
  CHECK(FloatsOf(vm.Output()) == std::vector<float>{4, 5, 6});

  const Value host = Floats({7, 8, 9});
  const Value there = *vm.TryInvoke("away", {&host, 1});
  vm.SetInput("x", there);
  CHECK_FALSE(vm.TryInputReport("x")->copied);
  vm.Invoke();
  CHECK(FloatsOf(vm.Output()) == std::vector<float>{7, 8, 9});
  vm.SetInput(InputHandle{1, 0}, there.tensor().view());
  CHECK(reason({1, 0}) == "the memory is on another device");
  vm.Invoke("back");
  CHECK(FloatsOf(vm.Output()) == std::vector<float>{7, 8, 9});

  CHECK(MessageOf(vm.TrySetInput("x", TensorView(x, {4}))) ==
        "function main, input 0 (x): f32[3]@1 expected, f32[4] given; device ext_dev:0 expected, cpu given");
  device.broken = true;
  CHECK(MessageOf(vm.TrySetInput("x", TensorView(x, {3}))) ==
        "function main, input 0 (x): the copy to its device failed: the bus is down");
}

TEST_CASE("a result on a device outlives its VM") {
  FakeDevice device;
  Value result;
  {
    VirtualMachine vm(ProgramOf(kRoundTrip, With(device)));
    const Value five = Scalar(5);
    result = *vm.TryInvoke("branch", {&five, 1});
  }
  CHECK(device.blocks.size() == 1);
  result = Value();
  CHECK(device.blocks.empty());
}

TEST_CASE("a device that fails or is full ends the run with its own words") {
  FakeDevice device;
  VirtualMachine vm(ProgramOf(kRoundTrip, With(device)));
  const Value x = Floats({1, 2, 3});
  device.broken = true;
  CHECK(MessageOf(vm.TryInvoke("main", {&x, 1})) ==
        "main@0 (%1 = device_copy %x, cpu, ext_dev:0): the copy failed: the bus is down");
  device.broken = false;
  CHECK(FloatsOf(vm.TryInvoke("main", {&x, 1})->tensor()) == std::vector<float>{1, 2, 3});
  vm.Trim();
  const std::uint64_t held = vm.bytes_held();
  device.full = true;
  const Result<Value> full = vm.TryInvoke("main", {&x, 1});
  REQUIRE_FALSE(full);
  CHECK(full.error().code() == StatusCode::kOutOfMemory);
  vm.Trim();
  CHECK(vm.bytes_held() == held);
  device.full = false;
  CHECK(MessageOf(vm.TryInvoke("main", {&x, 1})).empty());
}

TEST_CASE(
    "a device that fails or is full while a program is linked is an error, and the next link is right") {
  FakeDevice device;
  const Executable executable = ExecutableOf(kRoundTrip);
  device.full = true;
  CHECK(MessageOf(Program::Link(executable, With(device))) == "constant c: no memory on the device");
  device.full = false;
  device.broken = true;
  CHECK(MessageOf(Program::Link(executable, With(device)))
            .find("the copy to the device failed: the bus is down") != std::string::npos);
  CHECK(device.blocks.empty());
  device.broken = false;
  VirtualMachine vm(*Program::Link(executable, With(device)));
  CHECK(FloatsOf(vm.TryInvoke("constant", {})->tensor()) == std::vector<float>{7, 8, 9});
}

TEST_CASE("device memory counts against the byte limit") {
  FakeDevice device;
  Limits limits;
  limits.bytes = 1 << 20;
  VirtualMachine vm(ProgramOf(kRoundTrip, With(device)), limits);
  const Value over = Scalar(2 << 20);
  const Result<Value> failed = vm.TryInvoke("branch", {&over, 1});
  REQUIRE_FALSE(failed);
  CHECK(failed.error().code() == StatusCode::kMemoryLimit);
}

TEST_CASE("free device memory serves only requests of its scope and alignment") {
  FakeDevice device;
  VirtualMachine vm(ProgramOf(R"(
    .device plain = ext_dev:0
    .device texture = ext_dev:0 "global.texture"
    .func main() -> value
      %s = alloc_storage _, alignment=64, f32[8], plain
      %t = alloc_tensor %s, _, f32[8]
      kill %s
      kill %t
      %s = alloc_storage _, alignment=64, f32[8], texture
      %t = alloc_tensor %s, _, f32[8]
      kill %s
      kill %t
      %s = alloc_storage _, alignment=4096, f32[8], plain
      %t = alloc_tensor %s, _, f32[8]
      ret %t
    .end)",
                              With(device)));
  for (int i = 0; i < 3; ++i) REQUIRE(MessageOf(vm.TryInvoke()).empty());
  const Tensor result = vm.result().tensor();
  const auto address = reinterpret_cast<std::uintptr_t>(result.dl().data);
  CHECK(address % 4096 == 0);
  CHECK(device.blocks.at(address).scope.empty());
}

TEST_CASE("linking names the devices that the host did not give") {
  LinkOptions options;
  const Result<Program> program = Program::Link(ExecutableOf(kRoundTrip), options);
  REQUIRE_FALSE(program);
  CHECK(program.error().code() == StatusCode::kLinkFailed);
  CHECK(program.error().message() ==
        "the executable uses devices that the host did not give (LinkOptions::devices):\n  ext_dev:0");
}

}  // namespace
}  // namespace rewire::test
