// SPDX-License-Identifier: Apache-2.0
//
// Memory of the host that the device pins: results and outputs go there, so that copies do not stop the host.
// Without such memory there is nothing to test. What only the simulated driver knows, such as waits inside of
// it and virtual time, is checked where it is.
#include <dlfcn.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "rewire/tests/devices/test_device.h"
#include "rewire/tests/devices/twice_kernel.h"
#include "rewire/tests/simulated_cuda/control.h"
#include "rewire/vm/memory_bound.h"
#include "rewire/vm/pipeline.h"
#include "rewire/vm/virtual_machine.h"

namespace rewire::test {
namespace {

constexpr std::int64_t kCount = 4096;
constexpr std::uint64_t kBytes = kCount * 4;

bool Pinned(const TestDevice& device, const void* memory) {
  std::int32_t pinned = 0;
  return device.api.is_pinned(device.api.context, device.id, memory, kBytes, &pinned) == REWIRE_DEVICE_OK &&
         pinned != 0;
}

bool IsTwice(const float* y) {
  for (std::int64_t i = 0; i < kCount; ++i) {
    if (y[i] != 2.0f * static_cast<float>(i + 1)) return false;
  }
  return true;
}

// The simulated driver's counters and costs, if it is the one.
struct Simulation : simulated_cuda::Control {
  Simulation() {
    void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    found = driver != nullptr && Load([&](const char* name) { return dlsym(driver, name); });
    if (found) Reset();
  }
  ~Simulation() {
    if (found) Reset();
  }
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;
  simulated_cuda::Counters now() const {
    simulated_cuda::Counters counters{};
    if (found) GetCounters(&counters);
    return counters;
  }
  bool found = false;
};

TEST_CASE("a copy to the host lies in pinned memory, which the account and the bound know") {
  const TestDevice device;
  if (device.api.allocate_host == nullptr) return;
  const DeviceModule module(device, kTestKernels);
  const Program program = TwiceProgram(device, module, kCount);
  const Result<MemoryBound> bound = program.TryMemoryBound();
  REQUIRE(bound);
  CHECK(bound->pinned == kBytes);
  Value kept;
  const std::vector<float> values = Ramp(kCount);
  {
    VirtualMachine vm(program);
    vm.SetInput("x", TensorView(values.data(), {kCount}));
    vm.Invoke();
    CHECK(vm.bytes_peak() == bound->bytes);
    kept = vm.Output();
    CHECK(Pinned(device, kept.tensor().dl().data));
    CHECK(IsHostDevice(kept.tensor().dl().device));

    // A limit that leaves no room for it.
    const Value x = Floats(values);
    Limits limits;
    limits.bytes = bound->bytes - kBytes;
    VirtualMachine small(program, limits);
    CHECK(small.TryInvoke("main", {&x, 1}).error().code() == StatusCode::kMemoryLimit);
    limits.bytes = bound->bytes;
    small.SetLimits(limits);
    CHECK(MessageOf(small.TryInvoke("main", {&x, 1})).empty());
  }
  CHECK(IsTwice(kept.tensor().data<float>()));  // it outlives the VM

  // Memory of a fixed size has all of the host's in it, also what would be pinned.
  std::vector<char> room(bound->static_bytes + 128);
  void* begin = room.data();
  std::size_t left = room.size();
  VmOptions options;
  options.memory = {std::align(128, bound->static_bytes, begin, left), bound->static_bytes};
  Result<VirtualMachine> fixed = VirtualMachine::TryMake(program, options);
  REQUIRE(fixed);
  const Value x = Floats(Ramp(kCount));
  REQUIRE(fixed->TryInvoke("main", {&x, 1}));
  CHECK(IsTwice(fixed->Output().data<float>()));
  CHECK(Pinned(device, fixed->Output().dl().data) == Pinned(device, values.data()));
}

TEST_CASE("an output that is not pinned is staged when the run goes on after the call, and says so") {
  const TestDevice device;
  if (device.api.allocate_host == nullptr) return;
  const Simulation simulation;
  const DeviceModule module(device, kTestKernels);
  const Program program = TwiceProgram(device, module, kCount);
  MemoryBoundOptions options;
  options.outputs_bound = true;
  const std::uint64_t synchronous = program.TryMemoryBound({}, options)->bytes;
  CHECK(program.TryMemoryBound({}, options)->pinned == 0);
  options.asynchronous = true;
  const Result<MemoryBound> bound = program.TryMemoryBound({}, options);
  CHECK(bound->pinned == kBytes);
  CHECK(bound->bytes > synchronous);

  std::int64_t shape = kCount;
  DLManagedTensor managed{};  // the VM's result may be this memory
  VirtualMachine vm(program);
  const std::vector<float> x = Ramp(kCount);
  std::vector<float> y(kCount);
  const OutputHandle output = *program.FindOutput(0u);
  const bool staged = !Pinned(device, y.data());  // a CPU copies to all memory alike
  vm.SetInput("x", TensorView(x.data(), {kCount}));
  vm.SetOutput(output, TensorView(y.data(), {kCount}));
  for (int i = 0; i < 3; ++i) {
    std::fill(y.begin(), y.end(), 0.0f);
    const std::uint64_t waits = simulation.now().host_waits;
    vm.InvokeAsync();
    CHECK(simulation.now().host_waits == waits);
    CHECK(vm.Output().dl().data == y.data());
    vm.Wait();
    CHECK(IsTwice(y.data()));
    CHECK(vm.TryOutputReport(output)->copied == staged);
    CHECK(vm.TryOutputReport(output)->reason ==
          (staged ? "the run goes on after the call, and the bound memory is not pinned" : ""));
    if (i > 0) continue;  // later runs have the result of the one before, too
    CHECK(vm.bytes_peak() <= bound->bytes);
    CHECK((vm.bytes_peak() >= synchronous + kBytes) == staged);
  }

  // Who waits anyway has the copy in place; so has who asks for no copies.
  vm.Invoke();
  CHECK_FALSE(vm.TryOutputReport(output)->copied);
  vm.RequireZeroCopy(true);
  std::fill(y.begin(), y.end(), 0.0f);
  vm.InvokeAsync();
  vm.Wait();
  CHECK(IsTwice(y.data()));
  CHECK_FALSE(vm.TryOutputReport(output)->copied);
  vm.RequireZeroCopy(false);

  // Memory of the caller's that is pinned needs no detour, by whatever name it comes.
  void* pinned = nullptr;
  REQUIRE(device.api.allocate_host(device.api.context, device.id, kBytes, &pinned) == REWIRE_DEVICE_OK);
  managed.dl_tensor = {pinned, {kDLCUDAHost, 0}, 1, kFloat32, &shape, nullptr, 0};
  for (const bool by_dlpack : {false, true}) {
    std::memset(pinned, 0, kBytes);
    if (by_dlpack) {
      vm.SetOutput(output, *Tensor::FromDLPack(&managed));
    } else {
      vm.SetOutput(output, TensorView(static_cast<float*>(pinned), {kCount}));
    }
    const std::uint64_t waits = simulation.now().host_waits;
    vm.InvokeAsync();
    CHECK(simulation.now().host_waits == waits);
    vm.Wait();
    CHECK(IsTwice(static_cast<const float*>(pinned)));
    CHECK_FALSE(vm.TryOutputReport(output)->copied);
  }
  vm.ClearOutputs();
  REQUIRE(device.api.deallocate_host(device.api.context, device.id, pinned) == REWIRE_DEVICE_OK);
}

void RunPipeline(const Simulation& simulation, bool bound) {
  const TestDevice device;
  const DeviceModule module(device, kTestKernels);
  const Program program = TwiceProgram(device, module, kCount);
  constexpr std::uint64_t kPart = 1'000'000;  // virtual nanoseconds of a copy in, of the work, of a copy out
  constexpr std::uint64_t kCalls = 30;
  const std::vector<float> x = Ramp(kCount);
  std::vector<std::vector<float>> ys(kCalls, std::vector<float>(kCount));
  simulation.SetCosts(kPart, kPart, 0);
  const std::uint64_t begin = simulation.VirtualNow();
  {
    Pipeline pipeline = *Pipeline::TryMake(program, 3);
    std::uint64_t popped = 0;
    const auto pop = [&] {
      const Result<Value> result = pipeline.TryPop();
      REQUIRE(result);
      CHECK(IsTwice(bound ? ys[popped].data() : result->tensor().data<float>()));
      ++popped;
    };
    for (std::uint64_t i = 0; i < kCalls; ++i) {
      if (pipeline.size() == pipeline.depth()) pop();
      const Value input = *Tensor::Wrap(TensorView(x.data(), {kCount}), nullptr);
      const OutputBinding output{0, TensorView(ys[i].data(), {kCount})};
      REQUIRE(pipeline.TryPush({&input, 1}, {&output, bound ? 1u : 0u}));
    }
    while (popped < kCalls) pop();
  }
  // One after another, they would take three parts each.
  CHECK(static_cast<double>(simulation.VirtualNow() - begin) < 0.45 * 3 * kPart * kCalls);
}

TEST_CASE("calls of a pipeline overlap, whatever memory their inputs and outputs have") {
  (void)TestDevice();  // opens the driver
  const Simulation simulation;
  if (!simulation.found) return;  // with a real driver, how long things take is up to the machine
  RunPipeline(simulation, GENERATE(false, true));
  // No more is kept for later than was in use at one time: three calls, and one result.
  CHECK(simulation.now().pinned_allocations <= 4);
}

}  // namespace
}  // namespace rewire::test
