// SPDX-License-Identifier: Apache-2.0
// Runs that record themselves when they repeat (VirtualMachine::TrySetAutomaticRecording).
#include <catch2/catch.hpp>
#include <chrono>
#include <string>
#include <vector>

#include "rewire/tests/vm/device/device_programs.h"
#include "rewire/tests/vm/device/fake_device.h"
#include "rewire/tests/vm/test_program.h"
#include "rewire/vm/loader/kernel_api.h"
#include "rewire/vm/packed_function.h"

namespace rewire::test {
namespace {

// main of kChain, with an input and both outputs bound.
struct RecordedChain {
  explicit RecordedChain(FakeDevice* fake) : device(*fake), vm(ProgramOf(kChain, WithKernels(*fake))) {
    device.put_off = true;
    vm.SetInput("x", TensorView(x, {3}));
    vm.SetOutput(0, TensorView(h, {3}));
    vm.SetOutput(1, TensorView(g, {3}));
    vm.SetAutomaticRecording(true);
  }
  // Runs with a new value each time. Every result must be right, recorded or not.
  void Run(int times, const float* first = nullptr) {
    for (int i = 0; i < times; ++i) {
      x[0] = z[0] = static_cast<float>(++turn);
      vm.Invoke();
      CHECK((first != nullptr ? first : h)[0] == x[0] + 2);
      CHECK(g[0] == x[0] + 3);
    }
  }

  FakeDevice& device;
  VirtualMachine vm;
  float x[3] = {}, z[3] = {}, h[3] = {}, g[3] = {};
  int turn = 0;
};

TEST_CASE("runs that repeat are recorded, and every change begins anew") {
  FakeDevice device;
  {
    RecordedChain chain(&device);
    chain.Run(2);
    CHECK(device.replays == 0);
    chain.Run(4);
    CHECK(device.replays == 4);
    const std::size_t blocks = device.blocks.size();
    chain.Run(20);
    CHECK(device.replays == 24);
    CHECK(device.blocks.size() == blocks);

    SECTION("another output") {
      float other[3] = {};
      const float before = chain.h[0];
      chain.vm.SetOutput(0, TensorView(other, {3}));
      CHECK(device.recordings.empty());
      chain.Run(5, other);
      CHECK(device.replays == 24 + 3);
      CHECK(chain.h[0] == before);
    }
    SECTION("another input") {
      chain.vm.SetInput("x", TensorView(chain.z, {3}));
      CHECK(device.recordings.empty());
      chain.Run(5);
      CHECK(device.replays == 24 + 3);
    }
    SECTION("a run with inputs of its own") {
      const Value own = Floats({100, 2, 3});
      CHECK(FloatsOf(chain.vm.TryInvoke("main", {&own, 1})->field(0).tensor())[0] == 102);
      CHECK(device.recordings.empty());
      chain.Run(3);
      CHECK(device.replays == 24 + 1);
    }
    SECTION("a limit") {
      Limits limits;
      limits.bytes = std::uint64_t{1} << 20;
      chain.vm.SetLimits(limits);
      CHECK(device.recordings.empty());
      chain.Run(4);
      CHECK(device.replays == 24 + 2);
    }
    SECTION("an observer is told of every kernel") {
      struct Counter : Observer {
        bool wants_kernels() const override { return true; }
        void OnKernel(const KernelCall&) override { ++calls; }
        int calls = 0;
      } counter;
      chain.vm.SetObserver(&counter);
      chain.Run(5);
      CHECK(counter.calls == 5 * 3);
      CHECK(device.replays == 24);
      chain.vm.SetObserver(nullptr);
      chain.Run(3);
      CHECK(device.replays == 24 + 1);
    }
    SECTION("a deadline is kept, and does not end the recording") {
      chain.vm.SetDeadline(std::chrono::steady_clock::now());
      CHECK(chain.vm.TryInvoke().code() == StatusCode::kDeadlineExceeded);
      chain.vm.SetDeadline(std::chrono::steady_clock::time_point::max());
      chain.Run(1);
      CHECK(device.replays == 25);
    }
    SECTION("work that fails is an error of its call, and the next one is right") {
      device.breaks_late = true;
      CHECK(MessageOf(chain.vm.TryInvoke()).find("the work went wrong") != std::string::npos);
      device.breaks_late = false;
      chain.Run(4);
    }
    SECTION("a lost device is an error of every call") {
      device.lost = true;
      for (int i = 0; i < 4; ++i) {
        CHECK(MessageOf(chain.vm.TryInvoke()).find("device fake:0 is lost") != std::string::npos);
      }
    }
    SECTION("calls that are waited for later") {
      for (int i = 0; i < 4; ++i) {
        chain.x[0] = static_cast<float>(40 + i);
        chain.h[0] = 0;
        chain.vm.InvokeAsync();
        CHECK(chain.h[0] == 0);
        chain.vm.Wait();
        CHECK(chain.h[0] == chain.x[0] + 2);
      }
      CHECK(device.replays == 28);
    }
    SECTION("switched off") {
      chain.vm.SetAutomaticRecording(false);
      CHECK(device.recordings.empty());
      chain.Run(5);
      CHECK(device.replays == 24);
    }
  }
  CHECK(device.misuse.empty());
  CHECK(device.recordings.empty());
  CHECK(device.blocks.empty());
}

TEST_CASE("a deadline that passes while a run is recorded is that call's error, and the next one records") {
  FakeDevice device;
  RecordedChain chain(&device);
  chain.Run(2);
  chain.vm.SetDeadline(std::chrono::steady_clock::now());
  CHECK(chain.vm.TryInvoke().code() == StatusCode::kDeadlineExceeded);
  chain.vm.SetDeadline(std::chrono::steady_clock::time_point::max());
  chain.Run(5);
  CHECK(device.replays > 0);
  CHECK(device.misuse.empty());
}

TEST_CASE("a run is not recorded if a replay could not do the same") {
  FakeDevice device;
  RecordedChain chain(&device);
  SECTION("an output that nobody has bound: earlier results stay as they were") {
    REQUIRE(chain.vm.TryClearOutput(1u));
    std::vector<Value> results;
    for (int i = 0; i < 5; ++i) {
      chain.x[0] = static_cast<float>(i);
      chain.vm.Invoke();
      results.push_back(chain.vm.result());
    }
    for (int i = 0; i < 5; ++i) CHECK(FloatsOf(results[i].field(1).tensor())[0] == static_cast<float>(i + 3));
  }
  SECTION("an output whose memory the host gives in each run") {
    int asked = 0;
    struct Context {
      int* asked;
      float* memory;
    } context{&asked, chain.g};
    const auto give = [](void* data, std::uint64_t, std::uint64_t) -> void* {
      auto* own = static_cast<Context*>(data);
      ++*own->asked;
      return own->memory;
    };
    chain.vm.SetOutput(1, OutputAllocator{&context, give});
    chain.Run(5);
    CHECK(asked == 5);
  }
  SECTION("a kernel on the host") {
    const InputHandle input = *chain.vm.program().FindInput("x", "mixed");
    const OutputHandle output = *chain.vm.program().FindOutput(0u, "mixed");
    chain.vm.SetInput(input, TensorView(chain.x, {3}));
    chain.vm.SetOutput(output, TensorView(chain.h, {3}));
    for (int i = 0; i < 6; ++i) {
      chain.x[0] = static_cast<float>(i);
      chain.vm.Invoke("mixed");
      CHECK(chain.h[0] == static_cast<float>(i + 2));
    }
  }
  SECTION("a driver that does not record") {
    device.api.begin_recording = nullptr;
    device.api.end_recording = nullptr;
    device.api.replay = nullptr;
    device.api.destroy_recording = nullptr;
    chain.Run(6);
  }
  CHECK(device.replays == 0);
  CHECK(device.recordings.empty());
  CHECK(device.misuse.empty());
}

// Adds the element of a tensor on the host, which it reads when it is called.
int AddHost(void*, const RewireFFIAny* args, std::int32_t, RewireFFIAny*) {
  const DLTensor& from = *RewireTensorOf(&args[0]);
  const DLTensor& to = *RewireTensorOf(&args[2]);
  const float term = *static_cast<const float*>(RewireTensorOf(&args[1])->data);
  const RewireDeviceApi* api = nullptr;
  void* stream = nullptr;
  if (KernelApi()->device(to.device, &api, &stream) != 0) return -1;
  auto* device = static_cast<FakeDevice*>(api->context);
  return device->Give(stream, [device, term, source = from.data, target = to.data] {
    const auto* in = reinterpret_cast<const float*>(device->Memory(source, 12));
    auto* out = reinterpret_cast<float*>(device->Memory(target, 12));
    for (int i = 0; in != nullptr && out != nullptr && i < 3; ++i) out[i] = in[i] + term;
    return true;
  });
}

TEST_CASE("what the host reads of an input's memory is not taken for a constant") {
  FakeDevice device;
  device.put_off = true;
  LinkOptions options = WithKernels(device);
  options.kernels.AddFunction("test.add_host", Packed(AddHost));
  VirtualMachine vm(ProgramOf(R"(
    .device fake = ext_dev:0
    .kernel test.add_host
    .func shaped(x: f32[4], n: i64[2]) -> f32[?, ?]
      %d = device_copy %x, cpu, fake
      %v = reshape_tensor %d, %n
      %h = device_copy %v, fake, cpu
      ret %h
    .end
    .func added(x: f32[3], term: f32[]) -> f32[3]
      %d = device_copy %x, cpu, fake
      %s = alloc_storage _, alignment=64, f32[3], fake
      %a = alloc_tensor %s, _, f32[3]
      invoke_packed test.add_host(%d, %term, %a), outputs=1
      %h = device_copy %a, fake, cpu
      ret %h
    .end)",
                              options));
  vm.SetAutomaticRecording(true);
  float x[4] = {1, 2, 3, 4};
  float y[4] = {};
  SECTION("a shape") {
    std::int64_t n[2] = {2, 2};
    vm.SetInput(*vm.program().FindInput("x", "shaped"), TensorView(x, {4}));
    vm.SetInput(*vm.program().FindInput("n", "shaped"), TensorView(n, {2}));
    const OutputHandle output = *vm.program().FindOutput(0u, "shaped");
    vm.SetOutput(output, OutputCapacity{y, sizeof(y)});
    CHECK(MessageOf(vm.TryRecord("shaped"))
              .find("the run cannot be recorded: the host reads a value that may change") !=
          std::string::npos);
    for (int i = 0; i < 6; ++i) {
      n[0] = i % 2 == 0 ? 4 : 1;
      n[1] = 4 / n[0];
      vm.Invoke("shaped");
      CHECK(*vm.TryOutputShape(output) == std::vector<std::int64_t>{n[0], n[1]});
      CHECK(y[3] == 4);
    }
  }
  SECTION("an argument of a kernel that gives its work to the device") {
    float term = 1;
    const std::vector<std::int64_t> scalar;
    vm.SetInput(*vm.program().FindInput("x", "added"), TensorView(x, {3}));
    vm.SetInput(*vm.program().FindInput("term", "added"), TensorView(&term, kFloat32, scalar));
    vm.SetOutput(*vm.program().FindOutput(0u, "added"), TensorView(y, {3}));
    CHECK_THAT(MessageOf(vm.TryRecord("added")),
               Catch::EndsWith("the run cannot be recorded: kernel 'test.add_host' uses memory of the host"));
    for (int i = 0; i < 6; ++i) {
      term = static_cast<float>(i);
      vm.Invoke("added");
      CHECK(y[0] == 1 + term);
    }
  }
  CHECK(device.replays == 0);
  CHECK(device.misuse.empty());
}

}  // namespace
}  // namespace rewire::test
