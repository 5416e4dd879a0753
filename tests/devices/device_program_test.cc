// SPDX-License-Identifier: Apache-2.0
//
// Programs on the device that REWIRE_TEST_DEVICE names: outputs, streams, calls under way, recordings.
#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "rewire/tests/devices/test_device.h"
#include "rewire/tests/vm/test_program.h"
#include "rewire/vm/c_api/impl/handles.h"
#include "rewire/vm/c_api/memory.h"
#include "rewire/vm/host_function.h"
#include "rewire/vm/loader/kernel_api.h"
#include "rewire/vm/memory_bound.h"
#include "rewire/vm/packed_function.h"
#include "rewire/vm/pipeline.h"
#include "rewire/vm/virtual_machine.h"

namespace rewire::test {
namespace {

// y = 2 x by the device; the module is made by the first call and stays.
int Twice(void*, const RewireFFIAny* args, std::int32_t, RewireFFIAny*) {
  const DLTensor& x = *RewireTensorOf(&args[0]);
  const DLTensor& y = *RewireTensorOf(&args[1]);
  const RewireDeviceApi* api = nullptr;
  void* stream = nullptr;
  if (KernelApi()->device(y.device, &api, &stream) != 0) return -1;
  static const TestDevice kDevice;
  static const DeviceModule kModule(kDevice, kTestKernels);
  const auto count = static_cast<std::int32_t>(x.shape[0]);
  if (kModule.LaunchOn(stream, "scale", (count + 63) / 64, 64, x.data, y.data, 2.0f, count)) return 0;
  SetKernelError("RuntimeError", api->error(api->context));
  return -1;
}

// main gives 4 x on the device, and home gives it on the host.
Program TwiceTwice(const TestDevice& device) {
  LinkOptions options;
  options.kernels.AddFunction("test.twice", Packed(Twice));
  const std::string body = R"(
      %d = device_copy %x, cpu, gpu
      %s = alloc_storage _, alignment=256, f32[256], gpu
      %a = alloc_tensor %s, _, f32[256]
      invoke_packed test.twice(%d, %a), outputs=1
      %t = alloc_storage _, alignment=256, f32[256], gpu
      %b = alloc_tensor %t, _, f32[256]
      invoke_packed test.twice(%a, %b), outputs=1
)";
  return ProgramOf("    .device gpu = " + std::string(device.api.name) + R"(:0
    .kernel test.twice
    .func main(x: f32[256]) -> f32[256] on gpu
)" + body + R"(
      ret %b
    .end
    .func home(x: f32[256]) -> f32[256]
)" + body + R"(
      %h = device_copy %b, gpu, cpu
      ret %h
    .end)",
                   std::move(options));
}

TEST_CASE("a program runs on the device, and its outputs land in the caller's device memory") {
  const TestDevice device;
  VirtualMachine vm(TwiceTwice(device));
  const std::vector<float> values = Ramp(256);
  const Value x = Floats(values);
  std::vector<float> back(256);
  for (int i = 0; i < 3; ++i) {
    const Tensor result = vm.TryInvoke("main", {&x, 1})->tensor();
    REQUIRE(device.Back(back.data(), result.dl().data, 1024));
    REQUIRE(device.Wait());
    CHECK(back[255] == 1024.0f);
  }
  CHECK(vm.device_waits().all() == 3);

  DeviceMemory mine(device, 1024);
  vm.SetInput("x", x);
  vm.SetOutput(0, TensorView(mine.at(0), kFloat32, {256}, device.id));
  vm.RequireZeroCopy(true);
  vm.Invoke();
  CHECK(vm.Output().dl().data == mine.at(0));
  std::fill(back.begin(), back.end(), 0.0f);
  REQUIRE(device.Back(back.data(), mine.at(0), 1024));
  REQUIRE(device.Wait());
  CHECK(back[255] == 1024.0f);
}

TEST_CASE("the bound of a program's memory has the part of each device") {
  const TestDevice device;
  const Program program = TwiceTwice(device);
  const Result<MemoryBound> bound = program.TryMemoryBound("home");
  REQUIRE(bound);
  REQUIRE(bound->bounded());
  REQUIRE(bound->devices.size() == 1);
  CHECK(bound->devices[0].device == 1);
  // The copy of x, and two tensors: each has a block of its own.
  CHECK(bound->devices[0].bytes == 3 * 1024);
  VirtualMachine vm(program);
  const Value x = Floats(Ramp(256));
  REQUIRE(vm.TryInvoke("home", {&x, 1}));
  CHECK(vm.bytes_peak() <= bound->bytes);
  CHECK(vm.bytes_peak() > 3 * 1024);

  const RewireProgram handle{program};
  std::uint64_t bytes = 0;
  CHECK(rewire_program_device_memory_bound(&handle, "home", 0, nullptr, 0, 1, &bytes) == kRewireOk);
  CHECK(bytes == bound->devices[0].bytes);
  for (const std::uint32_t none : {0U, 2U})
    CHECK(rewire_program_device_memory_bound(&handle, "home", 0, nullptr, 0, none, &bytes) ==
          kRewireInvalidArgument);
}

TEST_CASE("tensors with the driver's handles are inputs and outputs, and results are exported with them") {
  const TestDevice device;
  if ((device.api.flags & REWIRE_DEVICE_HANDLES) == 0) return;
  const RewireDeviceApi& api = device.api;
  LinkOptions options;
  options.kernels.AddFunction("test.twice", Packed(Twice));
  VirtualMachine vm(ProgramOf("    .device gpu = " + std::string(api.name) + R"(:0
    .kernel test.twice
    .func main(x: f32[256] on gpu) -> f32[256] on gpu
      %s = alloc_storage _, alignment=256, f32[256], gpu
      %a = alloc_tensor %s, _, f32[256]
      invoke_packed test.twice(%x, %a), outputs=1
      ret %a
    .end)",
                              std::move(options)));
  const std::vector<float> values = Ramp(256);
  std::vector<float> back(256);
  // Two tensors in one buffer, as another library would have them: a handle and an offset in bytes.
  DeviceMemory both(device, 4096);
  REQUIRE(device.Copy(both.at(2048), values.data(), 1024));
  REQUIRE(device.Wait());
  void* handle = nullptr;
  std::uint64_t offset = 0;
  REQUIRE(api.find_handle(api.context, device.id, both.at(0), &handle, &offset) == REWIRE_DEVICE_OK);
  const std::vector<std::int64_t> shape = {256};
  vm.SetInput("x", TensorView(handle, kFloat32, shape, device.id, {}, 2048));
  vm.SetOutput(0, TensorView(handle, kFloat32, shape, device.id, {}, 1024));
  vm.RequireZeroCopy(true);
  vm.Invoke();
  REQUIRE(device.Back(back.data(), both.at(1024), 1024));
  REQUIRE(device.Wait());
  CHECK(back[255] == 512.0f);

  // An unbound result leaves as a handle, and comes back as one.
  vm.ClearOutputs();
  vm.RequireZeroCopy(false);
  vm.Invoke();
  DLManagedTensor* managed = vm.Output().ToDLPack();
  REQUIRE(managed != nullptr);
  CHECK(managed->dl_tensor.data != vm.Output().dl().data);
  vm.SetInput("x", *Tensor::FromDLPack(managed));
  vm.Invoke();
  REQUIRE(device.Back(back.data(), vm.Output().dl().data, 1024));
  REQUIRE(device.Wait());
  CHECK(back[255] == 1024.0f);

  const Value set = vm.Output();
  CHECK(MessageOf(vm.TrySetInput("x", TensorView(handle, kFloat32, shape, device.id, {}, 3584)))
            .find("the cl_mem has 4096 bytes, 4608 are needed") != std::string::npos);
  CHECK(MessageOf(vm.TrySetOutput(0, TensorView(handle, kFloat32, shape, device.id, {}, 3584))) != "");
}

TEST_CASE("work on the caller's stream is in order with the caller's own, without a wait between") {
  const TestDevice device;
  VirtualMachine vm(TwiceTwice(device));
  REQUIRE(MessageOf(vm.TrySetStream(device.id, device.stream)).empty());
  DeviceMemory mine(device, 1024);
  const std::vector<float> values = Ramp(256);
  std::vector<float> back(256);
  vm.SetInput("x", Floats(values));
  vm.SetOutput(0, TensorView(mine.at(0), kFloat32, {256}, device.id));
  for (int i = 0; i < 20; ++i) {
    back[255] = 0;
    vm.InvokeAsync();
    REQUIRE(device.Back(back.data(), mine.at(0), 1024));
    REQUIRE(device.Wait());
    CHECK(back[255] == 1024.0f);
  }
  vm.Wait();

  // Another stream waits for the event of the first.
  VirtualMachine second(TwiceTwice(device));
  DeviceMemory result(device, 1024);
  second.SetInput("x", Floats(values));
  second.SetOutput(0, TensorView(result.at(0), kFloat32, {256}, device.id));
  second.InvokeAsync();
  const Result<void*> done = second.TryDoneEvent(device.id);
  REQUIRE(done);
  REQUIRE(device.api.wait_event(device.api.context, device.id, device.stream, *done) == REWIRE_DEVICE_OK);
  REQUIRE(device.Back(back.data(), result.at(0), 1024));
  REQUIRE(device.Wait());
  CHECK(back[0] == 4.0f);
  second.Wait();
}

TEST_CASE("a pipeline gives results in the order of its calls, pushed and popped by two threads") {
  const TestDevice device;
  Pipeline pipeline = *Pipeline::TryMake(TwiceTwice(device), 3, "home");
  constexpr int kCalls = 200;
  std::thread pusher([&] {
    for (int i = 0; i < kCalls; ++i) {
      const Value x = Floats(std::vector<float>(256, static_cast<float>(i)));
      if (!pipeline.TryPush({&x, 1})) break;
    }
    pipeline.Close();
  });
  int right = 0;
  for (Result<Value> result = pipeline.TryPop(); result; result = pipeline.TryPop()) {
    const std::vector<float> y = FloatsOf(result->tensor());
    if (y[0] == 4.0f * static_cast<float>(right) && y[255] == y[0]) ++right;
  }
  pusher.join();
  CHECK(right == kCalls);
}

TEST_CASE("a recorded program gives what an interpreted one gives, where the driver records") {
  const TestDevice device;
  VirtualMachine vm(TwiceTwice(device));
  std::vector<float> x = Ramp(256);
  std::vector<float> y(256);
  const InputHandle input = *vm.program().FindInput("x", "home");
  const OutputHandle output = *vm.program().FindOutput(0u, "home");
  vm.SetInput(input, TensorView(x.data(), {256}));
  vm.SetOutput(output, TensorView(y.data(), {256}));
  const Status recorded = vm.TryRecord("home");
  if (device.properties().records == 0) {
    CHECK(MessageOf(recorded).find("cannot record") != std::string::npos);
    return;
  }
  REQUIRE(MessageOf(recorded).empty());
  for (int i = 1; i <= 5; ++i) {
    x[255] = static_cast<float>(i);
    vm.Invoke("home");
    CHECK(y[0] == 4.0f);
    CHECK(y[255] == 4.0f * static_cast<float>(i));
  }
}

TEST_CASE("runs that repeat record themselves where the driver can, with the same results everywhere") {
  const TestDevice device;
  VirtualMachine vm(TwiceTwice(device));
  vm.SetAutomaticRecording(true);
  std::vector<float> x = Ramp(256);
  std::vector<float> first(256);
  std::vector<float> second(256);
  const InputHandle input = *vm.program().FindInput("x", "home");
  const OutputHandle output = *vm.program().FindOutput(0u, "home");
  vm.SetInput(input, TensorView(x.data(), {256}));
  for (std::vector<float>* y : {&first, &second, &first}) {
    vm.SetOutput(output, TensorView(y->data(), {256}));
    for (int i = 1; i <= 5; ++i) {
      x[255] = static_cast<float>(i);
      vm.Invoke("home");
      CHECK((*y)[0] == 4.0f);
      CHECK((*y)[255] == 4.0f * static_cast<float>(i));
    }
  }
}

TEST_CASE("a state on the device is donated: each step writes over the one before") {
  const TestDevice device;
  LinkOptions options;
  options.kernels.AddFunction("test.twice", Packed(Twice));
  VirtualMachine vm(ProgramOf("    .device gpu = " + std::string(device.api.name) + R"(:0
    .kernel test.twice = "test.twice" in_place
    .func main(state: f32[256] on gpu) -> next: f32[256] on gpu
      %s = alloc_storage _, alignment=256, f32[256], gpu
      %a = alloc_tensor %s, _, f32[256]
      invoke_packed test.twice(%state, %a), outputs=1
      ret %a
    .end)",
                              std::move(options)));
  DeviceMemory state(device, 1024);
  const std::vector<float> values = Ramp(256);
  REQUIRE(device.Copy(state.at(0), values.data(), 1024));
  REQUIRE(device.Wait());
  vm.SetInput("state", TensorView(state.at(0), kFloat32, {256}, device.id));
  vm.Donate("state", "next");
  vm.RequireZeroCopy(true);
  SECTION("step by step") {}
  SECTION("recorded, where the driver can") { vm.SetAutomaticRecording(true); }
  for (int step = 0; step < 6; ++step) vm.Invoke();
  CHECK(vm.Output().dl().data == state.at(0));
  std::vector<float> back(256);
  REQUIRE(device.Back(back.data(), state.at(0), 1024));
  REQUIRE(device.Wait());
  CHECK(back[0] == 64.0f);
  CHECK(back[255] == 64.0f * 256);
}

TEST_CASE(
    "a deadline or a cancellation ends a run whose work is queued on the device, and the next run is right") {
  const TestDevice device;
  std::function<void()> between;
  LinkOptions options;
  options.kernels.AddFunction("test.twice", Packed(Twice));
  options.kernels.AddFunction("test.between", MakePackedFunction([&between] { between(); }));
  VirtualMachine vm(ProgramOf("    .device gpu = " + std::string(device.api.name) + R"(:0
    .kernel test.twice
    .kernel test.between
    .func main(x: f32[256]) -> f32[256]
      %d = device_copy %x, cpu, gpu
      %s = alloc_storage _, alignment=256, f32[256], gpu
      %a = alloc_tensor %s, _, f32[256]
      invoke_packed test.twice(%d, %a), outputs=1
      invoke_packed test.between(), outputs=0
      invoke_packed test.twice(%a, %d), outputs=1
      %h = device_copy %d, gpu, cpu
      ret %h
    .end)",
                              std::move(options)));
  std::vector<float> x = Ramp(256);
  std::vector<float> y(256);
  vm.SetInput("x", TensorView(x.data(), {256}));
  vm.SetOutput(0, TensorView(y.data(), {256}));
  for (int round = 0; round < 3; ++round) {
    between = [&] { vm.Cancel(); };
    CHECK(vm.TryInvoke().code() == StatusCode::kCancelled);
    // The caller's memory is free again: nothing reads it late.
    std::fill(x.begin(), x.end(), static_cast<float>(round));
    between = [] { std::this_thread::sleep_for(std::chrono::milliseconds(20)); };
    vm.SetDeadline(std::chrono::steady_clock::now() + std::chrono::milliseconds(10));
    CHECK(vm.TryInvoke().code() == StatusCode::kDeadlineExceeded);
    std::fill(x.begin(), x.end(), static_cast<float>(round + 1));
    between = [] {};
    vm.SetDeadline(std::chrono::steady_clock::time_point::max());
    REQUIRE(vm.TryInvoke());
    CHECK(y == std::vector<float>(256, 4.0f * static_cast<float>(round + 1)));
  }
}

}  // namespace
}  // namespace rewire::test
