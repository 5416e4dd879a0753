// SPDX-License-Identifier: Apache-2.0
// Runs that go on after the call, on a device that does nothing before somebody waits.
#include <catch2/catch.hpp>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "rewire/tests/vm/device/device_programs.h"
#include "rewire/tests/vm/device/fake_device.h"
#include "rewire/tests/vm/test_program.h"
#include "rewire/vm/c_api/asynchronous.h"
#include "rewire/vm/c_api/impl/handles.h"
#include "rewire/vm/host_function.h"

namespace rewire::test {
namespace {

TEST_CASE("an asynchronous run returns before its work is done, and TryWait after it") {
  FakeDevice device;
  device.put_off = true;
  {
    VirtualMachine vm(ProgramOf(kChain, WithKernels(device)));
    float x[3] = {1, 2, 3};
    float h[3] = {};
    float g[3] = {};
    vm.SetInput("x", TensorView(x, {3}));
    vm.SetOutput(0, TensorView(h, {3}));
    vm.SetOutput(1, TensorView(g, {3}));
    vm.InvokeAsync();
    CHECK(device.waits == 0);
    CHECK(h[0] == 0);
    vm.Wait();
    CHECK(device.waits == 1);
    CHECK(h[0] == 3);
    CHECK(g[2] == 6);
    REQUIRE(MessageOf(vm.TryWait()).empty());
    CHECK(device.waits == 1);
    x[0] = 10;
    vm.Invoke();  // the usual run waits, as before
    CHECK(h[0] == 12);
    vm.ClearOutputs();
    vm.InvokeAsync();
    vm.InvokeAsync();  // drops the first result, whose copies are under way
    vm.Wait();
    CHECK(FloatsOf(vm.result().field(0).tensor()) == std::vector<float>{12, 4, 5});
  }
  CHECK(device.misuse.empty());
  CHECK(device.blocks.empty());
}

// The work that it may read between two instructions is done.
class WorkWatcher : public Observer {
 public:
  explicit WorkWatcher(const FakeDevice& device) : device_(device) {}
  bool wants_instructions() const override { return true; }
  void OnInstruction(const Instruction&) override {
    ++instructions;
    pending += device_.default_stream.work.size();
    for (const auto& [address, stream] : device_.streams) pending += stream->work.size();
  }

  int instructions = 0;
  std::size_t pending = 0;

 private:
  const FakeDevice& device_;
};

TEST_CASE("an observer of instructions finds the work of the device done") {
  FakeDevice device;
  device.put_off = true;
  {
    WorkWatcher watcher(device);
    VirtualMachine vm(ProgramOf(kChain, WithKernels(device)));
    vm.SetInput("x", Floats({1, 2, 3}));
    vm.SetObserver(&watcher);
    vm.Invoke();
    CHECK(watcher.instructions == 18);
    CHECK(watcher.pending == 0);
    CHECK(FloatsOf(vm.result().field(0).tensor()) == std::vector<float>{3, 4, 5});
  }
  CHECK(device.misuse.empty());
}

TEST_CASE("what changes a VM first waits for the work that was started, and so does its end") {
  FakeDevice device;
  device.put_off = true;
  float x[3] = {1, 2, 3};
  float y[3] = {5, 6, 7};
  float h[3] = {};
  {
    VirtualMachine vm(ProgramOf(kChain, WithKernels(device)));
    vm.SetInput("x", TensorView(x, {3}));
    vm.SetOutput(0, TensorView(h, {3}));
    vm.InvokeAsync();
    CHECK(vm.TryOutputShape(0)->size() == 1);  // looking on does not wait
    CHECK(h[0] == 0);
    vm.SetInput("x", TensorView(y, {3}));
    CHECK(h[0] == 3);
    vm.InvokeAsync();
  }
  CHECK(h[0] == 7);
  CHECK(device.misuse.empty());
}

TEST_CASE("a failure of started work is told by TryWait, or by the next run") {
  FakeDevice device;
  device.put_off = true;
  VirtualMachine vm(ProgramOf(kChain, WithKernels(device)));
  const Value x = Floats({1, 2, 3});
  vm.SetInput("x", x);
  device.breaks_late = true;
  vm.InvokeAsync();
  const std::string told = MessageOf(vm.TryWait());
  CHECK(told.find("device fake:0: the work went wrong") != std::string::npos);
  CHECK(told.find("main@") != std::string::npos);
  CHECK(vm.result().kind() == ValueKind::kNone);
  vm.InvokeAsync();
  REQUIRE(MessageOf(vm.TryClearOutputs()).empty());  // waits, and keeps the failure
  device.breaks_late = false;
  CHECK(MessageOf(vm.TryInvoke()).find("work of an earlier run: device fake:0: the work went wrong") !=
        std::string::npos);
  vm.Invoke();
  CHECK(FloatsOf(vm.result().field(0).tensor()) == std::vector<float>{3, 4, 5});
}

TEST_CASE("a run in memory of a fixed size is waited for") {
  FakeDevice device;
  device.put_off = true;
  std::vector<char> memory(64 << 10);
  VmOptions options;
  options.memory = {memory.data(), memory.size()};
  VirtualMachine vm = VirtualMachine::Make(ProgramOf(kChain, WithKernels(device)), options);
  vm.SetInput("x", Floats({1, 2, 3}));
  vm.InvokeAsync();
  CHECK(device.waits == 1);
  CHECK(MessageOf(vm.TryRecord()) == "a VM with memory of a fixed size records no runs");
}

TEST_CASE("work goes to the caller's stream, and events order it with the caller's work") {
  FakeDevice device;
  device.put_off = true;
  const DLDevice fake{kDLExtDev, 0};
  RewireDeviceApi& api = device.api;
  void* stream = nullptr;
  REQUIRE(api.make_stream(api.context, fake, &stream) == REWIRE_DEVICE_OK);
  auto* own = static_cast<FakeDevice::Stream*>(stream);
  {
    const Program program = ProgramOf(kChain, WithKernels(device));
    VirtualMachine vm(program);
    VirtualMachine second(program);
    float x[3] = {1, 2, 3};
    float h[3] = {};
    vm.SetInput("x", TensorView(x, {3}));
    vm.SetOutput(0, TensorView(h, {3}));
    vm.Invoke();
    CHECK(device.streams.size() == 2);
    REQUIRE(MessageOf(vm.TrySetStream(fake, stream)).empty());
    CHECK(device.streams.size() == 1);  // its own has gone
    vm.InvokeAsync();
    CHECK(own->given > 0);
    void* done = *vm.TryDoneEvent(fake);
    std::int32_t reached = 1;
    api.query_event(api.context, fake, done, &reached);
    CHECK(reached == 0);
    // The second VM reads what the first one writes, behind its event and without the host.
    second.SetInput("x", TensorView(h, {3}));
    REQUIRE(MessageOf(second.TryWaitForEvent(fake, done)).empty());
    second.InvokeAsync();
    h[0] = 0;
    second.Wait();
    CHECK(h[0] == 3);
    CHECK(FloatsOf(second.result().field(0).tensor()) == std::vector<float>{5, 6, 7});
    vm.Wait();
    CHECK(MessageOf(vm.TrySetStream({kDLCUDA, 1}, stream)) == "the executable does not name device cuda:1");
    CHECK(MessageOf(vm.TryDoneEvent({kDLCUDA, 1})) == "the executable does not name device cuda:1");
  }
  CHECK(device.streams.size() == 1);  // the caller's stays
  CHECK(device.misuse.empty());
  api.make_stream = nullptr;
  api.destroy_stream = nullptr;
  api.make_event = nullptr;
  api.destroy_event = nullptr;
  api.record_event = nullptr;
  api.wait_event = nullptr;
  api.query_event = nullptr;
  api.synchronize_event = nullptr;
  VirtualMachine plain(ProgramOf(kChain, WithKernels(device)));
  CHECK(MessageOf(plain.TrySetStream(fake, stream)) == "device fake:0 has no streams but the default one");
  CHECK(MessageOf(plain.TryWaitForEvent(fake, nullptr)) == "device fake:0 has no events");
}

TEST_CASE("the C API starts runs and records them, too") {
  FakeDevice device;
  device.put_off = true;
  VirtualMachine made(ProgramOf(kChain, WithKernels(device)));
  RewireVm vm{std::move(made)};
  float x[3] = {1, 2, 3};
  float h[3] = {};
  vm.machine.SetInput("x", TensorView(x, {3}));
  vm.machine.SetOutput(0, TensorView(h, {3}));
  REQUIRE(rewire_vm_invoke_async(&vm, nullptr) == kRewireOk);
  void* event = nullptr;
  CHECK(rewire_vm_done_event(&vm, {kDLExtDev, 0}, &event) == kRewireOk);
  CHECK(rewire_vm_wait_for_event(&vm, {kDLExtDev, 0}, event) == kRewireOk);
  CHECK(h[0] == 0);
  REQUIRE(rewire_vm_wait(&vm) == kRewireOk);
  CHECK(h[0] == 3);
  REQUIRE(rewire_vm_record(&vm, "main") == kRewireOk);
  x[0] = 4;
  REQUIRE(rewire_vm_invoke_async(&vm, nullptr) == kRewireOk);
  REQUIRE(rewire_vm_wait(&vm) == kRewireOk);
  CHECK(device.replays == 1);
  CHECK(h[0] == 6);
  CHECK(rewire_vm_set_stream(&vm, {kDLExtDev, 0}, nullptr) == kRewireOk);
  CHECK(device.recordings.empty());
}

TEST_CASE("programs on two devices follow each other by events, and the host waits once") {
  FakeDevice device;
  device.put_off = true;
  const DLDevice first{kDLExtDev, 0};
  void* between = nullptr;
  REQUIRE(device.api.allocate(&device, first, 12, 64, "", nullptr, &between) == REWIRE_DEVICE_OK);
  {
    VirtualMachine before(ProgramOf(R"(
      .device fake = ext_dev:0
      .kernel test.add_one
      .func main(x: f32[3]) -> f32[3] on fake
        %d = device_copy %x, cpu, fake
        %s = alloc_storage _, alignment=64, f32[3], fake
        %a = alloc_tensor %s, _, f32[3]
        invoke_packed test.add_one(%d, %a), outputs=1
        ret %a
      .end)",
                                    WithKernels(device)));
    VirtualMachine after(ProgramOf(R"(
      .device fake = ext_dev:0
      .device other = ext_dev:1
      .kernel test.add_one
      .func main(x: f32[3] on fake) -> f32[3]
        %d = device_copy %x, fake, other
        %s = alloc_storage _, alignment=64, f32[3], other
        %a = alloc_tensor %s, _, f32[3]
        invoke_packed test.add_one(%d, %a), outputs=1
        %h = device_copy %a, other, cpu
        ret %h
      .end)",
                                   WithKernels(device)));
    float x[3] = {1, 2, 3};
    float y[3] = {};
    before.SetInput("x", TensorView(x, {3}));
    before.SetOutput(0, TensorView(between, kFloat32, {3}, first));
    after.SetInput("x", TensorView(between, kFloat32, {3}, first));
    after.SetOutput(0, TensorView(y, {3}));
    for (int i = 0; i < 3; ++i) {
      x[0] = static_cast<float>(10 * i);
      const int waits = device.waits;
      before.InvokeAsync();
      const Result<void*> done = before.TryDoneEvent(first);
      REQUIRE(done);
      REQUIRE(MessageOf(after.TryWaitForEvent(first, *done)).empty());
      after.InvokeAsync();
      CHECK(device.waits == waits);
      CHECK(y[0] != x[0] + 2);  // nothing has been done yet
      after.Wait();
      CHECK(y[0] == x[0] + 2);
      before.Wait();
    }
  }
  CHECK(device.misuse.empty());
  CHECK(device.blocks.size() == 1);
}

TEST_CASE("a deadline or a cancellation while work is queued ends the run behind that work") {
  FakeDevice device;
  device.put_off = true;
  VirtualMachine* running = nullptr;
  LinkOptions options = WithKernels(device);
  options.kernels.AddFunction("test.cancel", MakePackedFunction([&running] { running->Cancel(); }));
  VirtualMachine vm(ProgramOf(R"(
    .device fake = ext_dev:0
    .kernel test.add_one
    .kernel test.cancel
    .func main(x: f32[3]) -> f32[3]
      %d = device_copy %x, cpu, fake
      %s = alloc_storage _, alignment=64, f32[3], fake
      %a = alloc_tensor %s, _, f32[3]
      invoke_packed test.add_one(%d, %a), outputs=1
      invoke_packed test.cancel(), outputs=0
      invoke_packed test.add_one(%a, %d), outputs=1
      %h = device_copy %d, fake, cpu
      ret %h
    .end)",
                              options));
  running = &vm;
  float x[3] = {1, 2, 3};
  vm.SetInput("x", TensorView(x, {3}));
  const Status cancelled = vm.TryInvoke();
  REQUIRE_FALSE(cancelled);
  CHECK(cancelled.code() == StatusCode::kCancelled);
  CHECK(device.waits == 1);  // the caller's memory is free again
  vm.SetDeadline(std::chrono::steady_clock::now());
  CHECK(vm.TryInvoke().code() == StatusCode::kDeadlineExceeded);
  CHECK(device.misuse.empty());
}

}  // namespace
}  // namespace rewire::test
