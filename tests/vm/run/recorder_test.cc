// SPDX-License-Identifier: Apache-2.0
// Runs that are recorded once and replayed.
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "rewire/tests/vm/device/device_programs.h"
#include "rewire/tests/vm/device/fake_device.h"
#include "rewire/tests/vm/test_program.h"
#include "rewire/vm/loader/kernel_api.h"
#include "rewire/vm/memory_bound.h"

namespace rewire::test {
namespace {

TEST_CASE("a recorded run is replayed with what its inputs then hold") {
  FakeDevice device;
  device.put_off = true;
  float x[3] = {1, 2, 3};
  float y[3] = {4, 5, 6};
  float h[3] = {};
  {
    VirtualMachine vm(ProgramOf(kChain, WithKernels(device)));
    vm.SetInput("x", TensorView(x, {3}));
    vm.SetOutput(0, TensorView(h, {3}));
    vm.Record();
    const std::size_t blocks = device.blocks.size();
    for (int i = 0; i < 3; ++i) {
      x[0] = static_cast<float>(10 * i);
      vm.Invoke();
      CHECK(h[0] == x[0] + 2);
      CHECK(FloatsOf(vm.result().field(1).tensor())[0] == x[0] + 3);
    }
    CHECK(device.replays == 3);
    CHECK(vm.recorded());
    CHECK(device.blocks.size() == blocks);
    x[0] = 7;
    vm.InvokeAsync();
    CHECK(h[0] == 22);
    vm.Wait();
    CHECK(h[0] == 9);
    vm.SetDeadline(std::chrono::steady_clock::now());
    CHECK(MessageOf(vm.TryInvoke()) == "the deadline passed before the recorded run of main");
    vm.SetDeadline(std::chrono::steady_clock::time_point::max());
    vm.Invoke();
    CHECK(device.replays == 5);  // a deadline does not end the recording
    // A change does, and so does another run.
    vm.SetInput("x", TensorView(y, {3}));
    CHECK(!vm.recorded());
    CHECK(device.recordings.empty());
    vm.Invoke();
    CHECK(h[0] == 6);
    vm.Record();
    CHECK(FloatsOf(vm.TryInvoke("mixed", std::vector<Value>{Floats({1, 2, 3})})->tensor())[0] == 3);
    CHECK(device.recordings.empty());
    vm.Invoke();
    CHECK(device.replays == 5);
    CHECK(h[0] == 6);
    vm.Record();
    vm.InvokeAsync();
  }
  CHECK(device.misuse.empty());
  CHECK(device.blocks.empty());
  CHECK(device.recordings.empty());
}

TEST_CASE("a recorded run finds all of its memory, although its blocks differ in alignment") {
  FakeDevice device;
  {
    // Equally large blocks: one that is aligned to 256 and free, then one for less, in each run.
    VirtualMachine vm(ProgramOf(R"(
      .device fake = ext_dev:0
      .kernel test.add_one
      .func main(x: f32[3] on fake) -> f32[3] on fake
        %s = alloc_storage _, alignment=256, f32[3], fake
        %a = alloc_tensor %s, _, f32[3]
        invoke_packed test.add_one(%x, %a), outputs=1
        kill %a
        kill %s
        %t = alloc_storage _, alignment=64, f32[3], fake
        %b = alloc_tensor %t, _, f32[3]
        invoke_packed test.add_one(%x, %b), outputs=1
        ret %b
      .end)",
                                WithKernels(device)));
    void* x = nullptr;
    REQUIRE(device.api.allocate(&device, {kDLExtDev, 0}, 12, 64, "", nullptr, &x) == REWIRE_DEVICE_OK);
    vm.SetInput("x", TensorView(x, kFloat32, {3}, {kDLExtDev, 0}));
    const Result<MemoryBound> bound = vm.program().TryMemoryBound();
    CHECK(MessageOf(vm.TryRecord()).empty());
    for (int i = 0; i < 3; ++i) vm.Invoke();
    CHECK(device.replays == 3);
    CHECK(device.blocks.size() == 3);  // x, and one for each alignment
    CHECK(vm.bytes_peak() <= bound->bytes);
    REQUIRE(device.api.deallocate(&device, {kDLExtDev, 0}, x, nullptr) == REWIRE_DEVICE_OK);
  }
  CHECK(device.misuse.empty());
  CHECK(device.blocks.empty());
}

TEST_CASE("a run in which the host takes part is not recorded, and says why; the VM then runs as before") {
  FakeDevice device;
  device.put_off = true;
  LinkOptions options = WithKernels(device);
  VirtualMachine vm(ProgramOf(std::string(kChain) + R"(
  .func reads(n: i64[]) -> i64[]
    %d = device_copy %n, cpu, fake
    %one = load_consti 1
    if %d == %one goto yes else no
  yes:
    %h = device_copy %d, fake, cpu
    ret %h
  no:
    ret %n
  .end
  .func last(x: f32[3]) -> f32[3]
    %d = device_copy %x, cpu, fake
    %h = device_copy %d, fake, cpu
    %v = alloc_storage _, alignment=64, f32[3], cpu
    %w = alloc_tensor %v, _, f32[3]
    invoke_packed test.host_add_one(%x, %w), outputs=1
    ret %w
  .end
  .func host(x: f32[3]) -> f32[3]
    ret %x
  .end)",
                              options));
  float x[3] = {1, 2, 3};
  std::int64_t n = 1;
  const std::vector<std::int64_t> scalar;
  vm.SetInput(*vm.program().FindInput(0, "host"), TensorView(x, {3}));
  CHECK(MessageOf(vm.TryRecord("host")) ==
        "function host gives no work to a device, there is nothing to record");
  const auto refused = [&](const char* function, const TensorView& input, const std::string& why) {
    vm.SetInput(*vm.program().FindInput(0, function), input);
    const std::string message = MessageOf(vm.TryRecord(function));
    INFO(message);
    CHECK(message.find(why) != std::string::npos);
    CHECK(MessageOf(vm.TryInvoke(function)).empty());
    CHECK(device.replays == 0);
  };
  refused("mixed", TensorView(x, {3}),
          "the run cannot be recorded: the host waits, because a kernel on the host read");
  refused("reads", TensorView(&n, kInt64, scalar),
          "the run cannot be recorded: the host waits, because an instruction read an integer");
  refused("last", TensorView(x, {3}),
          "the run cannot be recorded: kernel 'test.host_add_one' runs on the host");
  CHECK(FloatsOf(vm.result().tensor()) == std::vector<float>{2, 3, 4});
  CHECK(device.misuse.empty());
  CHECK(device.recordings.empty());

  Observer observer;
  vm.SetObserver(&observer);
  CHECK(MessageOf(vm.TryRecord("host")) == "a run that is observed cannot be recorded; remove the observer");
  vm.SetObserver(nullptr);
  device.api.begin_recording = nullptr;
  device.api.end_recording = nullptr;
  device.api.replay = nullptr;
  device.api.destroy_recording = nullptr;
  vm.SetInput("x", TensorView(x, {3}));
  CHECK(MessageOf(vm.TryRecord()) == "device fake:0 cannot record");
}

TEST_CASE("a recording has one device") {
  FakeDevice device;
  VirtualMachine vm(ProgramOf(R"(
    .device first = ext_dev:0
    .device second = ext_dev:1
    .func main(x: f32[3]) -> f32[3]
      %a = device_copy %x, cpu, first
      %b = device_copy %a, first, second
      %h = device_copy %b, second, cpu
      ret %h
    .end)",
                              WithDevice(device)));
  vm.SetInput("x", Floats({1, 2, 3}));
  CHECK(MessageOf(vm.TryRecord()) == "the VM has used several devices; a recording has one");
}

TEST_CASE("a run that is recorded begins no work on a further device") {
  FakeDevice device;
  LinkOptions options = WithDevice(device);
  int calls = 0;
  const auto ask = [](void* made, const RewireFFIAny*, std::int32_t, RewireFFIAny*) {
    const RewireDeviceApi* api = nullptr;
    void* stream = nullptr;
    const std::int32_t id = (*static_cast<int*>(made))++ == 0 ? 0 : 1;
    return KernelApi()->device({kDLExtDev, id}, &api, &stream);
  };
  options.kernels.AddFunction("test.ask", Packed(ask, &calls));
  VirtualMachine vm(ProgramOf(R"(
    .device first = ext_dev:0
    .device second = ext_dev:1
    .kernel test.ask
    .func main(x: f32[3]) -> f32[3]
      %a = device_copy %x, cpu, first
      invoke_packed test.ask(%a), outputs=0
      %h = device_copy %a, first, cpu
      ret %h
    .end)",
                              options));
  vm.SetInput("x", Floats({1, 2, 3}));
  CHECK_THAT(MessageOf(vm.TryRecord()),
             Catch::EndsWith("the run cannot be recorded: it uses a further device"));
  CHECK(device.recordings.empty());
  CHECK(MessageOf(vm.TryInvoke()).empty());
}

TEST_CASE("a replay that fails is an error of its call, and the next run is right") {
  FakeDevice device;
  device.put_off = true;
  VirtualMachine vm(ProgramOf(kChain, WithKernels(device)));
  float x[3] = {1, 2, 3};
  vm.SetInput("x", TensorView(x, {3}));
  vm.Record();
  device.breaks_late = true;
  const std::string message = MessageOf(vm.TryInvoke());
  CHECK(message.find("device fake:0: the work went wrong") != std::string::npos);
  CHECK(message.find("main@") != std::string::npos);
  device.breaks_late = false;
  vm.Invoke();
  vm.ClearOutputs();
  vm.Invoke();
  CHECK(FloatsOf(vm.result().field(0).tensor()) == std::vector<float>{3, 4, 5});
  vm.Record();
  device.lost = true;
  CHECK(MessageOf(vm.TryInvoke()).find("replaying the recorded run: device fake:0 is lost") !=
        std::string::npos);
}

}  // namespace
}  // namespace rewire::test
