// SPDX-License-Identifier: Apache-2.0
// The VM's own writes into an output's memory, such as shapes and fills, come after the copies that still
// read it.
#include <catch2/catch.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "rewire/tests/vm/device/device_programs.h"
#include "rewire/tests/vm/device/fake_device.h"
#include "rewire/tests/vm/test_program.h"
#include "rewire/vm/virtual_machine.h"

namespace rewire::test {
namespace {

TEST_CASE("a shape is written into an output when the copy of the shape before it is done") {
  for (const bool bound : {false, true}) {
    INFO("bound " << bound);
    FakeDevice device;
    device.put_off = true;
    VirtualMachine vm(ProgramOf(R"(
      .device fake = ext_dev:0
      .func main(x: f32[?], y: f32[?]) -> (i64[1], i64[1])
        %i = load_consti 0
        %one = load_consti 1
        %t = move %x
        %z = shape_of %x
        %d = device_copy %z, cpu, fake
      again:
        %s = shape_of %t
        if %i == %one goto done else more
      more:
        %d = device_copy %s, cpu, fake
        kill %s
        %t = move %y
        %i = load_consti 1
        goto again
      done:
        %h = device_copy %d, fake, cpu
        %r = alloc_adt tag=0 (%s, %h)
        ret %r
      .end)",
                                WithDevice(device)));
    std::int64_t here[1] = {};
    std::int64_t there[1] = {};
    vm.SetInput("x", Floats({1, 2, 3, 4, 5}));
    vm.SetInput("y", Floats({1, 2, 3}));
    if (bound) {
      vm.SetOutput(0, TensorView(here, {1}));
      vm.SetOutput(1, TensorView(there, {1}));
    }
    vm.Invoke();
    CHECK(*vm.result().field(0).tensor().data<std::int64_t>() == 3);
    CHECK(*vm.result().field(1).tensor().data<std::int64_t>() == 5);
    if (bound) CHECK(vm.device_waits().of(WaitCause::kReuse) == 1);
  }
}

// The first round's tensor is copied to the device, and the second one is made in the same output.
constexpr char kTwoRounds[] = R"(
  .device fake = ext_dev:0
  .kernel test.host_add_one
  .func main(x: f32[3], y: f32[3]) -> (f32[3], f32[3])
    %i = load_consti 0
    %one = load_consti 1
    %t = move %x
    %d = device_copy %x, cpu, fake
  again:
    %v = alloc_storage _, alignment=64, f32[3], cpu
    %s = alloc_tensor %v, _, f32[3]
    invoke_packed test.host_add_one(%t, %s), outputs=1
    if %i == %one goto done else more
  more:
    %d = device_copy %s, cpu, fake
    kill %s
    kill %v
    %t = move %y
    %i = load_consti 1
    goto again
  done:
    %h = device_copy %d, fake, cpu
    %r = alloc_adt tag=0 (%s, %h)
    ret %r
  .end)";

TEST_CASE("an output is filled when the copy of the tensor before it is done") {
  for (const StorageFill fill : {StorageFill::kUndefined, StorageFill::kZero, StorageFill::kPoison}) {
    for (const bool bound : {false, true}) {
      INFO("fill " << static_cast<int>(fill) << ", bound " << bound);
      FakeDevice device;
      device.put_off = true;
      LinkOptions options = WithKernels(device);
      options.storage_fill = fill;
      VirtualMachine vm(ProgramOf(kTwoRounds, std::move(options)));
      float here[3] = {};
      float there[3] = {};
      vm.SetInput("x", Floats({1, 2, 3}));
      vm.SetInput("y", Floats({10, 20, 30}));
      if (bound) {
        vm.SetOutput(0, TensorView(here, {3}));
        vm.SetOutput(1, TensorView(there, {3}));
      }
      vm.Invoke();
      CHECK(FloatsOf(vm.result().field(0).tensor()) == std::vector<float>{11, 21, 31});
      CHECK(FloatsOf(vm.result().field(1).tensor()) == std::vector<float>{2, 3, 4});
    }
  }
}

TEST_CASE("a recorded run fills no output, because a replay would not") {
  FakeDevice device;
  LinkOptions options = WithKernels(device);
  options.storage_fill = StorageFill::kZero;
  VirtualMachine vm(ProgramOf(R"(
    .device fake = ext_dev:0
    .func main(x: f32[3]) -> (f32[3], f32[3])
      %v = alloc_storage _, alignment=64, f32[3], cpu
      %s = alloc_tensor %v, _, f32[3]
      %d = device_copy %x, cpu, fake
      %h = device_copy %d, fake, cpu
      %r = alloc_adt tag=0 (%s, %h)
      ret %r
    .end)",
                              std::move(options)));
  float here[3] = {};
  vm.SetInput("x", Floats({1, 2, 3}));
  vm.SetOutput(0, TensorView(here, {3}));
  CHECK_THAT(MessageOf(vm.TryRecord()),
             Catch::EndsWith("the run cannot be recorded: the host writes an output"));
  vm.ClearOutputs();
  vm.SetOutput(1, TensorView(here, {3}));  // the device writes all of it
  CHECK(MessageOf(vm.TryRecord()) == "");
}

TEST_CASE("the host fills a device's block when the device has done what it did with it before") {
  FakeDevice device;
  device.put_off = true;
  device.ShareMemory();
  {
    LinkOptions options = WithKernels(device);
    options.storage_fill = StorageFill::kZero;
    VirtualMachine vm(ProgramOf(R"(
      .device fake = ext_dev:0
      .kernel test.add_one
      .func main(x: f32[3]) -> (f32[3], f32[3] on fake)
        %d = device_copy %x, cpu, fake
        %s = alloc_storage _, alignment=64, f32[3], fake
        %a = alloc_tensor %s, _, f32[3]
        invoke_packed test.add_one(%d, %a), outputs=1
        %h = device_copy %a, fake, cpu
        kill %a
        kill %s
        %t = alloc_storage _, alignment=64, f32[3], fake
        %b = alloc_tensor %t, _, f32[3]
        %r = alloc_adt tag=0 (%h, %b)
        ret %r
      .end)",
                                std::move(options)));
    vm.SetInput("x", Floats({1, 2, 3}));
    vm.Invoke();
    CHECK(FloatsOf(vm.result().field(0).tensor()) == std::vector<float>{2, 3, 4});
    CHECK(vm.result().field(1).tensor().data<float>()[0] == 0);
  }
  CHECK(device.misuse.empty());
  CHECK(device.blocks.empty());
}

}  // namespace
}  // namespace rewire::test
