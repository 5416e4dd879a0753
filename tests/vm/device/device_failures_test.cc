// SPDX-License-Identifier: Apache-2.0
// Devices that fail while a run goes on: the call that waits tells it, whoever met it first, and nothing uses
// the caller's memory afterwards.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "rewire/tests/vm/device/device_programs.h"
#include "rewire/tests/vm/device/fake_device.h"
#include "rewire/tests/vm/test_program.h"
#include "rewire/vm/virtual_machine.h"

namespace rewire::test {
namespace {

// A tensor of the host dies while its copy to the device is under way.
constexpr char kKilledInFlight[] = R"(
  .device fake = ext_dev:0
  .kernel test.add_one
  .kernel test.host_add_one
  .func main(x: f32[3]) -> f32[3]
    %v = alloc_storage _, alignment=64, f32[3], cpu
    %w = alloc_tensor %v, _, f32[3]
    invoke_packed test.host_add_one(%x, %w), outputs=1
    %d = device_copy %w, cpu, fake
    kill %w
    kill %v
    %s = alloc_storage _, alignment=64, f32[3], fake
    %a = alloc_tensor %s, _, f32[3]
    invoke_packed test.add_one(%d, %a), outputs=1
    %o = device_copy %a, fake, cpu
    ret %o
  .end)";

TEST_CASE("a copy that fails where its memory is let go is an error of the run") {
  FakeDevice device;
  device.put_off = true;
  {
    VirtualMachine vm(ProgramOf(kKilledInFlight, WithKernels(device)));
    float x[3] = {1, 2, 3};
    float y[3] = {};
    vm.SetInput("x", TensorView(x, {3}));
    vm.SetOutput(0, TensorView(y, {3}));
    vm.Invoke();
    CHECK(y[0] == 3);
    for (const bool async : {false, true}) {
      device.FailWork(FakeDevice::kCopies, 1);
      Status status = async ? vm.TryInvokeAsync() : vm.TryInvoke();
      if (async) {
        CHECK(MessageOf(status) == "");
        status = vm.TryWait();
      }
      CHECK(MessageOf(status) ==
            "device fake:0: the work went wrong; main@24 (%3 = device_copy %2, cpu, ext_dev:0) enqueued the "
            "work that failed");
      CHECK(vm.result().kind() == ValueKind::kNone);
      CHECK(vm.device_waits().of(WaitCause::kReuse) > 0);
      x[0] += 1;
      vm.Invoke();
      CHECK(y[0] == x[0] + 2);
    }
  }
  CHECK(device.misuse.empty());
  CHECK(device.blocks.empty());
}

// The work of each device uses the caller's memory.
constexpr char kTwoDevices[] = R"(
  .device one = ext_dev:0
  .device two = vulkan:0
  .func main(x: f32[3], y: f32[3]) -> (f32[3], f32[3])
    %d = device_copy %x, cpu, one
    %e = device_copy %y, cpu, two
    %a = device_copy %d, one, cpu
    %b = device_copy %e, two, cpu
    %r = alloc_adt tag=0 (%a, %b)
    ret %r
  .end)";

TEST_CASE("a failed call has waited for every device, and tells the failure that it met first") {
  FakeDevice one;
  FakeDevice two(kDLVulkan, "two");
  one.put_off = two.put_off = true;
  LinkOptions options = WithDevice(one);
  options.devices.push_back(&two.api);
  VirtualMachine vm(ProgramOf(kTwoDevices, std::move(options)));
  float x[3] = {1, 2, 3};
  float y[3] = {4, 5, 6};
  float a[3] = {};
  float b[3] = {};
  vm.SetInput("x", TensorView(x, {3}));
  vm.SetInput("y", TensorView(y, {3}));
  vm.SetOutput(0, TensorView(a, {3}));
  vm.SetOutput(1, TensorView(b, {3}));
  std::string told = "device fake:0: the work went wrong";
  SECTION("the first fails") { one.FailWork(FakeDevice::kCopies, 1); }
  SECTION("the second fails") {
    two.FailWork(FakeDevice::kCopies, 1);
    told = "device two:0: the work went wrong";
  }
  SECTION("both fail") {
    one.FailWork(FakeDevice::kCopies, 1);
    two.FailWork(FakeDevice::kCopies, 1);
    told = "device two:0: the work went wrong";  // its stream is waited for first
  }
  SECTION("the first wait fails before it has waited") {
    one.FailCall(FakeDevice::kWaits, 1);
    told = "device fake:0: the driver refuses to wait";
  }
  for (const bool async : {false, true}) {
    Status status = async ? vm.TryInvokeAsync() : vm.TryInvoke();
    if (async) status = vm.TryWait();
    if (!async) CHECK_THAT(MessageOf(status), Catch::StartsWith(told));
    CHECK(one.Pending() == 0);
    CHECK(two.Pending() == 0);
    if (async) CHECK(MessageOf(status) == "");
  }
  CHECK(a[0] == 1);
  CHECK(b[2] == 6);
}

TEST_CASE("memory that a device does not take back is an error of the call, or of the next run") {
  FakeDevice device;
  VirtualMachine vm(ProgramOf(kKilledInFlight, WithKernels(device)));
  vm.SetInput("x", Floats({1, 2, 3}));
  vm.Invoke();
  device.FailCall(FakeDevice::kFrees, 1);
  CHECK(MessageOf(vm.TryTrim()) == "freeing memory: device fake:0: the driver refuses to free");
  vm.Invoke();
  Limits limits;
  limits.bytes = 1000;
  device.FailCall(FakeDevice::kFrees, 1);
  vm.SetLimits(limits);  // frees what the limit has no room for
  vm.SetLimits({});
  CHECK(MessageOf(vm.TryInvoke()) == "freeing memory: device fake:0: the driver refuses to free");
  vm.Invoke();
  CHECK(FloatsOf(vm.result().tensor()) == std::vector<float>{3, 4, 5});
}

TEST_CASE("a tensor on a device that the program does not name is never taken for one of the host") {
  FakeDevice device;
  VirtualMachine vm(ProgramOf(R"(
    .device fake = ext_dev:0
    .func main(x: f32[3] on *) -> f32[3] on *
      ret %x
    .end
    .func any(x: value) -> value
      ret %x
    .end
    .func shape(x: i64[1] on *, y: f32[3]) -> f32[3]
      %r = reshape_tensor %y, %x
      ret %r
    .end)",
                              WithDevice(device)));
  const auto there = [](DLDataType dtype, Span<const std::int64_t> shape) {
    return TensorView(reinterpret_cast<void*>(0x10000), dtype, shape, DLDevice{kDLCUDA, 1});
  };
  const std::string unknown = "the executable does not name device cuda:1";
  float y[3] = {};
  const std::vector<std::int64_t> three = {3};
  for (const char* function : {"main", "any"}) {
    INFO(function);
    const InputHandle x = *vm.program().FindInput("x", function);
    const OutputHandle output = *vm.program().FindOutput(0U, function);
    REQUIRE(MessageOf(vm.TrySetInput(x, there(kFloat32, three))) == "");
    REQUIRE(MessageOf(vm.TryInvoke(function)) == "");  // it may pass through
    REQUIRE(MessageOf(vm.TrySetOutput(output, TensorView(y, {3}))) == "");
    const Status status = vm.TryInvoke(function);
    CHECK(status.code() == StatusCode::kInvalidArgument);
    CHECK(MessageOf(status).find(unknown) != std::string::npos);
  }
  const std::vector<std::int64_t> one = {1};
  REQUIRE(MessageOf(vm.TrySetInput(*vm.program().FindInput("x", "shape"), there(kInt64, one))) == "");
  REQUIRE(MessageOf(vm.TrySetInput(*vm.program().FindInput("y", "shape"), TensorView(y, {3}))) == "");
  CHECK(MessageOf(vm.TryInvoke("shape")).find(unknown) != std::string::npos);
  CHECK(MessageOf(vm.TrySetStream(kHost, nullptr)) == "device cpu has no streams");
}

}  // namespace
}  // namespace rewire::test
