// SPDX-License-Identifier: Apache-2.0
//
// The stream that a kernel library of the tvm-ffi ABI gets, on the device that REWIRE_TEST_DEVICE names.
#include <atomic>
#include <catch2/catch.hpp>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "rewire/tests/devices/test_device.h"
#include "rewire/tests/support/paths.h"
#include "rewire/tests/vm/test_program.h"
#include "rewire/vm/loader/kernel_api.h"
#include "rewire/vm/virtual_machine.h"

namespace rewire::test {
namespace {

// The running VM's stream as Rewire's own kernels get it.
int OwnStream(void*, const RewireFFIAny* args, std::int32_t, RewireFFIAny* result) {
  const RewireDeviceApi* api = nullptr;
  void* stream = nullptr;
  if (KernelApi()->device(RewireTensorOf(&args[0])->device, &api, &stream) != 0) return -1;
  result->type_index = kRewireFFIInt;
  result->v_int64 = static_cast<std::int64_t>(reinterpret_cast<std::intptr_t>(stream));
  return 0;
}

// main: the stream by tvm-ffi, and by Rewire. home: the stream by tvm-ffi for a tensor of the host.
Program StreamsOf(const TestDevice& device) {
  LinkOptions options;
  REQUIRE(MessageOf(options.kernels.AddLibrary(std::string(BuildDir()) + "/tests/libraries/stream_of.so"))
              .empty());
  options.kernels.AddFunction("test.own_stream", Packed(OwnStream));
  return ProgramOf("    .device gpu = " + std::string(device.api.name) + R"(:0
    .kernel stream_of
    .kernel test.own_stream
    .func main(x: f32[4]) -> (integer, integer)
      %d = device_copy %x, cpu, gpu
      %theirs = invoke_packed stream_of(%d), outputs=0
      %ours = invoke_packed test.own_stream(%d), outputs=0
      %both = alloc_adt tag=0 (%theirs, %ours)
      ret %both
    .end
    .func home(x: f32[4]) -> integer
      %d = device_copy %x, cpu, gpu
      %ours = invoke_packed test.own_stream(%d), outputs=0
      %theirs = invoke_packed stream_of(%x), outputs=0
      ret %theirs
    .end
)",
                   options);
}

struct Streams {
  std::int64_t theirs = 0;
  std::int64_t ours = 0;
};
Streams Asked(VirtualMachine* vm) {
  vm->SetInput("x", Floats({1, 2, 3, 4}));
  if (const Status done = vm->TryInvoke(); !done) throw std::runtime_error(done.error().message());
  return {vm->result().field(0).integer(), vm->result().field(1).integer()};
}

TEST_CASE(
    "a library of tvm-ffi gets the stream of the VM that runs it, also the caller's, and none for the CPU") {
  static constexpr float kHome[] = {1, 2, 3, 4};
  const TestDevice device;
  VirtualMachine vm(StreamsOf(device));
  const Streams own = Asked(&vm);
  CHECK(own.theirs != 0);
  CHECK(own.theirs == own.ours);

  REQUIRE(MessageOf(vm.TrySetStream(device.id, device.stream)).empty());
  const Streams callers = Asked(&vm);
  CHECK(callers.theirs == static_cast<std::int64_t>(reinterpret_cast<std::intptr_t>(device.stream)));
  CHECK(callers.theirs == callers.ours);

  vm.SetInputs("home", {{TensorView(kHome, {4})}});
  REQUIRE(MessageOf(vm.TryInvoke("home")).empty());
  CHECK(vm.result().integer() == 0);
}

TEST_CASE("each VM's libraries of tvm-ffi get that VM's stream, on all threads at once") {
  const TestDevice device;
  const Program program = StreamsOf(device);
  constexpr int kThreads = 2;
  std::vector<std::set<std::int64_t>> seen(kThreads);
  std::atomic<int> begun{0};
  std::atomic<int> differ{0};
  std::vector<VirtualMachine> machines;
  machines.reserve(kThreads);
  for (int t = 0; t < kThreads; ++t) machines.emplace_back(program);
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      const auto at = static_cast<std::size_t>(t);
      ++begun;
      while (begun < kThreads) std::this_thread::yield();
      for (int i = 0; i < 50; ++i) {
        const Streams asked = Asked(&machines[at]);
        seen[at].insert(asked.theirs);
        if (asked.theirs != asked.ours) ++differ;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(differ == 0);
  CHECK(seen[0].size() == 1);
  CHECK(seen[1].size() == 1);
  CHECK(seen[0] != seen[1]);
  CHECK(seen[0].count(0) + seen[1].count(0) == 0);
}

}  // namespace
}  // namespace rewire::test
