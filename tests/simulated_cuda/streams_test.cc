// SPDX-License-Identifier: Apache-2.0
// Streams of the simulated CUDA driver: order by streams and events, asynchrony, host functions, virtual
// time.
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "rewire/tests/simulated_cuda/driver.h"

namespace rewire::simulated_cuda::test {
namespace {

struct Gate {
  std::atomic<bool> open{false};
  std::atomic<int> passed{0};
  static void Wait(void* gate) {
    auto* self = static_cast<Gate*>(gate);
    while (!self->open) std::this_thread::sleep_for(std::chrono::microseconds(50));
    ++self->passed;
  }
};

CUevent NewEvent(unsigned flags = kEventDefault) {
  CUevent event = nullptr;
  REQUIRE(Driver().cuEventCreate(&event, flags) == CUDA_SUCCESS);
  return event;
}

TEST_CASE("devices are named a simulation, and have the attributes that are set") {
  Session session;
  int count = 0, version = 0;
  CHECK(Driver().cuDeviceGetCount(&count) == CUDA_SUCCESS);
  CHECK(count == 2);
  CHECK(Driver().cuDriverGetVersion(&version) == CUDA_SUCCESS);
  CHECK(version >= 12000);
  char name[64];
  CHECK(Driver().cuDeviceGetName(name, sizeof name, 1) == CUDA_SUCCESS);
  CHECK(std::string(name) == "Rewire simulated CUDA device");
  int major = 0;
  CHECK(Driver().cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 1) ==
        CUDA_SUCCESS);
  CHECK(major == 9);
  Simulation().SetComputeCapability(1, 8, 6);
  CHECK(Driver().cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 1) ==
        CUDA_SUCCESS);
  CHECK(major == 8);
  CUdevice device = 0;
  CHECK(Driver().cuDeviceGet(&device, 2) == CUDA_ERROR_INVALID_DEVICE);
}

TEST_CASE("all functions are found by name, with their plain names too") {
  Session session;
  void* function = nullptr;
  CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
#define REWIRE_ROW(name, symbol, parameters, need)                                       \
  CHECK(Driver().cuGetProcAddress(#name, &function, 12000, 0, &status) == CUDA_SUCCESS); \
  CHECK(function == reinterpret_cast<void*>(Driver().name));
  REWIRE_CUDA_FUNCTIONS(REWIRE_ROW)
#undef REWIRE_ROW
  CHECK(Driver().cuGetProcAddress("cuNothing", &function, 12000, 0, &status) == CUDA_ERROR_NOT_FOUND);
  CHECK(status == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
}

TEST_CASE("a stream goes on while another one waits") {
  Session session;
  CUstream slow = session.NewStream(), fast = session.NewStream();
  Gate gate;
  CHECK(Driver().cuLaunchHostFunc(slow, Gate::Wait, &gate) == CUDA_SUCCESS);
  Gate done;
  done.open = true;
  CHECK(Driver().cuLaunchHostFunc(fast, Gate::Wait, &done) == CUDA_SUCCESS);
  CHECK(Driver().cuStreamSynchronize(fast) == CUDA_SUCCESS);
  CHECK(done.passed == 1);
  CHECK(Driver().cuStreamQuery(slow) == CUDA_ERROR_NOT_READY);
  gate.open = true;
  CHECK(Driver().cuStreamSynchronize(slow) == CUDA_SUCCESS);
  CHECK(gate.passed == 1);
  CHECK(Driver().cuStreamQuery(slow) == CUDA_SUCCESS);
}

TEST_CASE("an event holds up the stream that waits for it, and only that one") {
  Session session;
  CUstream first = session.NewStream(), second = session.NewStream();
  CUevent event = NewEvent();
  Gate gate, after;
  after.open = true;
  CHECK(Driver().cuEventQuery(event) == CUDA_SUCCESS);  // was never recorded
  CHECK(Driver().cuLaunchHostFunc(first, Gate::Wait, &gate) == CUDA_SUCCESS);
  CHECK(Driver().cuEventRecord(event, first) == CUDA_SUCCESS);
  CHECK(Driver().cuStreamWaitEvent(second, event, 0) == CUDA_SUCCESS);
  CHECK(Driver().cuLaunchHostFunc(second, Gate::Wait, &after) == CUDA_SUCCESS);
  CHECK(Driver().cuEventQuery(event) == CUDA_ERROR_NOT_READY);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  CHECK(after.passed == 0);
  gate.open = true;
  CHECK(Driver().cuEventSynchronize(event) == CUDA_SUCCESS);
  CHECK(Driver().cuStreamSynchronize(second) == CUDA_SUCCESS);
  CHECK(after.passed == 1);
  CHECK(Driver().cuEventDestroy(event) == CUDA_SUCCESS);
  CHECK(Driver().cuEventDestroy(event) == CUDA_ERROR_INVALID_HANDLE);
}

TEST_CASE("the legacy default stream and blocking streams wait for each other") {
  Session session;
  CUstream blocking = nullptr;
  CHECK(Driver().cuStreamCreateWithPriority(&blocking, 0, -1) == CUDA_SUCCESS);
  Gate gate, after;
  after.open = true;
  CHECK(Driver().cuLaunchHostFunc(blocking, Gate::Wait, &gate) == CUDA_SUCCESS);
  CHECK(Driver().cuLaunchHostFunc(LegacyStream(), Gate::Wait, &after) == CUDA_SUCCESS);
  CHECK(Driver().cuStreamQuery(nullptr) == CUDA_ERROR_NOT_READY);
  CHECK(after.passed == 0);
  gate.open = true;
  CHECK(Driver().cuStreamSynchronize(nullptr) == CUDA_SUCCESS);
  CHECK(after.passed == 1);
  CHECK(Driver().cuStreamDestroy(blocking) == CUDA_SUCCESS);
}

TEST_CASE("each thread has a default stream of its own") {
  Session session;
  Gate gate;
  CHECK(Driver().cuLaunchHostFunc(PerThreadStream(), Gate::Wait, &gate) == CUDA_SUCCESS);
  CHECK(Driver().cuStreamQuery(PerThreadStream()) == CUDA_ERROR_NOT_READY);
  CUresult elsewhere = CUDA_ERROR_UNKNOWN, without = CUDA_SUCCESS;
  std::thread([&] {
    without = Driver().cuStreamQuery(PerThreadStream());
    Driver().cuCtxSetCurrent(session.context);
    elsewhere = Driver().cuStreamQuery(PerThreadStream());
  }).join();
  CHECK(without == CUDA_ERROR_INVALID_CONTEXT);
  CHECK(elsewhere == CUDA_SUCCESS);
  gate.open = true;
  CHECK(Driver().cuStreamSynchronize(PerThreadStream()) == CUDA_SUCCESS);
}

TEST_CASE("a host function must not call the driver") {
  Session session;
  static CUresult inside = CUDA_SUCCESS;
  CUstream stream = session.NewStream();
  const auto call = [](void*) {
    int count = 0;
    inside = Driver().cuDeviceGetCount(&count);
  };
  CHECK(Driver().cuLaunchHostFunc(stream, call, nullptr) == CUDA_SUCCESS);
  CHECK(Driver().cuStreamSynchronize(stream) == CUDA_SUCCESS);
  CHECK(inside == CUDA_ERROR_NOT_PERMITTED);
}

TEST_CASE("results are the same whatever the delays") {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    Session session;
    Simulation().SetDelays(seed, 300000);
    CUstream first = session.NewStream(), second = session.NewStream();
    CUevent ready = NewEvent(kEventDisableTiming);
    CUdeviceptr values = session.Upload(std::vector<int>(300, 5), first);
    int count = 300;
    CHECK(session.Launch("increment", 3, 100, {&values, &count}, first) == CUDA_SUCCESS);
    CHECK(Driver().cuEventRecord(ready, first) == CUDA_SUCCESS);
    CHECK(Driver().cuStreamWaitEvent(second, ready, 0) == CUDA_SUCCESS);
    CHECK(session.Launch("increment", 3, 100, {&values, &count}, second) == CUDA_SUCCESS);
    CHECK(session.Download<int>(values, 300, second) == std::vector<int>(300, 7));
    CHECK(Driver().cuEventDestroy(ready) == CUDA_SUCCESS);
  }
}

TEST_CASE("virtual time shows what overlaps") {
  Session session;
  Simulation().SetCosts(1000, 0, 1);
  Simulation().SetLog(1);
  void* pinned = nullptr;
  REQUIRE(Driver().cuMemHostAlloc(&pinned, 2000, 0) == CUDA_SUCCESS);
  std::memset(pinned, 0, 2000);
  CUstream copies = session.NewStream(), kernels = session.NewStream();
  CUdeviceptr a = 0, b = 0;
  REQUIRE(Driver().cuMemAlloc(&a, 1000) == CUDA_SUCCESS);
  REQUIRE(Driver().cuMemAlloc(&b, 1000) == CUDA_SUCCESS);
  CUevent begin = NewEvent(), end = NewEvent();
  int count = 250;
  CHECK(Driver().cuEventRecord(begin, copies) == CUDA_SUCCESS);
  CHECK(Driver().cuMemcpyHtoDAsync(a, pinned, 1000, copies) == CUDA_SUCCESS);
  CHECK(Driver().cuEventRecord(end, copies) == CUDA_SUCCESS);
  CHECK(Driver().cuStreamWaitEvent(kernels, end, 0) == CUDA_SUCCESS);
  CHECK(session.Launch("increment", 1, 250, {&a, &count}, kernels) == CUDA_SUCCESS);
  CHECK(Driver().cuMemcpyHtoDAsync(b, pinned, 1000, copies) == CUDA_SUCCESS);
  CHECK(Driver().cuCtxSynchronize() == CUDA_SUCCESS);
  LogEntry first, kernel, second;
  REQUIRE(Simulation().LogSize() == 3);
  CHECK(Simulation().GetLog(0, &first) == 1);
  CHECK(Simulation().GetLog(1, &kernel) == 1);
  CHECK(Simulation().GetLog(2, &second) == 1);
  CHECK(Simulation().GetLog(3, &second) == 0);
  CHECK(first.kind == 'h');
  CHECK(first.end - first.start == 1000);
  CHECK(std::string(kernel.name) == "increment");
  CHECK(kernel.start == first.end);
  CHECK(second.start == first.end);  // beside the kernel
  CHECK(second.stream == first.stream);
  CHECK(kernel.stream != first.stream);
  CHECK(Simulation().VirtualNow() == kernel.end);
  float milliseconds = 0;
  CHECK(Driver().cuEventElapsedTime(&milliseconds, begin, end) == CUDA_SUCCESS);
  CHECK(milliseconds == Approx(0.001));
  Driver().cuEventDestroy(begin);
  Driver().cuEventDestroy(end);
  Driver().cuMemFree(a);
  Driver().cuMemFree(b);
  CHECK(Driver().cuMemFreeHost(pinned) == CUDA_SUCCESS);
}

TEST_CASE("work takes real time if that is asked for") {
  Session session;
  Simulation().SetCosts(20000000, 0, 0);
  Simulation().SetRealTime(1);
  CUdeviceptr values = session.Upload(std::vector<int>(1));
  int count = 1;
  const auto begin = std::chrono::steady_clock::now();
  CHECK(session.Launch("increment", 1, 1, {&values, &count}) == CUDA_SUCCESS);
  CHECK(Driver().cuStreamSynchronize(nullptr) == CUDA_SUCCESS);
  CHECK(std::chrono::steady_clock::now() - begin >= std::chrono::milliseconds(20));
}

}  // namespace
}  // namespace rewire::simulated_cuda::test
