// SPDX-License-Identifier: Apache-2.0
// Failures that tests ask of the simulated CUDA driver: of calls, of work, of devices.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "rewire/tests/simulated_cuda/driver.h"

namespace rewire::simulated_cuda::test {
namespace {

// A small program: everything it takes is given back whatever fails. The first failure, or success.
CUresult RunOnce(const std::string& image, std::vector<int>* result) {
  const CudaDriver& driver = Driver();
  CUresult first = CUDA_SUCCESS;
  const auto ok = [&first](CUresult next) {
    if (first == CUDA_SUCCESS) first = next;
    return next == CUDA_SUCCESS;
  };
  CUcontext context = nullptr;
  CUstream stream = nullptr;
  CUevent event = nullptr;
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  CUdeviceptr memory = 0, other = 0;
  void* pinned = nullptr;
  int count = 10;
  void* arguments[] = {&memory, &count};
  if (!ok(driver.cuDevicePrimaryCtxRetain(&context, 0))) return first;
  const auto run = [&] {
    if (!ok(driver.cuCtxSetCurrent(context)) || !ok(driver.cuStreamCreate(&stream, kStreamNonBlocking)) ||
        !ok(driver.cuEventCreate(&event, kEventDisableTiming)) ||
        !ok(driver.cuModuleLoadData(&module, image.data())) ||
        !ok(driver.cuModuleGetFunction(&function, module, "increment")) ||
        !ok(driver.cuMemHostAlloc(&pinned, 40, 0)) || !ok(driver.cuMemAllocAsync(&memory, 40, stream)) ||
        !ok(driver.cuMemAlloc(&other, 40)) || !ok(driver.cuMemsetD32Async(memory, 5, 10, stream)))
      return;
    if (!ok(driver.cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED))) return;
    const bool captured =
        ok(driver.cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, stream, arguments, nullptr));
    if (!ok(driver.cuStreamEndCapture(stream, &graph)) || !captured) return;
    if (!ok(driver.cuGraphInstantiate(&exec, graph, 0)) || !ok(driver.cuGraphLaunch(exec, stream)) ||
        !ok(driver.cuMemcpyDtoDAsync(other, memory, 40, stream)) ||
        !ok(driver.cuMemcpyDtoHAsync(pinned, other, 40, stream)) ||
        !ok(driver.cuEventRecord(event, stream)) || !ok(driver.cuEventSynchronize(event)))
      return;
    result->assign(static_cast<int*>(pinned), static_cast<int*>(pinned) + 10);
  };
  run();
  if (exec != nullptr) ok(driver.cuGraphExecDestroy(exec));
  if (graph != nullptr) ok(driver.cuGraphDestroy(graph));
  if (memory != 0) ok(driver.cuMemFreeAsync(memory, stream));
  if (other != 0) ok(driver.cuMemFree(other));
  if (pinned != nullptr) ok(driver.cuMemFreeHost(pinned));
  if (module != nullptr) ok(driver.cuModuleUnload(module));
  if (event != nullptr) ok(driver.cuEventDestroy(event));
  if (stream != nullptr) ok(driver.cuStreamSynchronize(stream)), ok(driver.cuStreamDestroy(stream));
  ok(driver.cuDevicePrimaryCtxRelease(0));
  return first;
}

TEST_CASE("each call of a program fails in turn, and nothing is left") {
  const std::string image = ImageFile("test_kernels");
  Session session;
  std::vector<int> result;
  REQUIRE(RunOnce(image, &result) == CUDA_SUCCESS);
  REQUIRE(result == std::vector<int>(10, 6));
  int k = 1;
  for (;; ++k) {
    Simulation().Reset();
    Simulation().FailCall("*", static_cast<std::uint64_t>(k), CUDA_ERROR_OPERATING_SYSTEM);
    const CUresult failed = RunOnce(image, &result);
    const Counters left = session.Count();
    INFO("call " << k);
    REQUIRE(left.device_allocations + left.pinned_allocations + left.streams + left.events + left.modules +
                left.graphs + left.graph_execs ==
            0);
    REQUIRE(left.retained_contexts == 1);
    REQUIRE(left.violations == 0);
    if (failed == CUDA_SUCCESS) break;
    REQUIRE(failed == CUDA_ERROR_OPERATING_SYSTEM);
    result.clear();
    Simulation().Reset();
    REQUIRE(RunOnce(image, &result) == CUDA_SUCCESS);
    REQUIRE(result == std::vector<int>(10, 6));
  }
  CHECK(k - 1 == 29);  // the calls of the program
}

TEST_CASE("the k-th call of one function fails, others do not") {
  Session session;
  Simulation().FailCall("cuMemAlloc", 2, CUDA_ERROR_OUT_OF_MEMORY);
  CUdeviceptr a = 0, b = 0;
  CHECK(Driver().cuMemAlloc(&a, 8) == CUDA_SUCCESS);
  CHECK(Driver().cuMemsetD8Async(a, 0, 8, nullptr) == CUDA_SUCCESS);
  CHECK(Driver().cuMemAlloc(&b, 8) == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(Driver().cuMemAlloc(&b, 8) == CUDA_SUCCESS);
  CHECK(Simulation().CountCalls("cuMemAlloc") == 3);
  // A release that fails has released.
  Simulation().FailCall("cuMemFree", 1, CUDA_ERROR_LAUNCH_FAILED);
  CHECK(Driver().cuMemFree(a) == CUDA_ERROR_LAUNCH_FAILED);
  CHECK(session.Count().device_allocations == 1);
  CHECK(Driver().cuMemFree(b) == CUDA_SUCCESS);
  const char* text = nullptr;
  CHECK(Driver().cuGetErrorName(CUDA_ERROR_LAUNCH_FAILED, &text) == CUDA_SUCCESS);
  CHECK(std::string(text) == "CUDA_ERROR_LAUNCH_FAILED");
  CHECK(Driver().cuGetErrorString(CUDA_ERROR_LAUNCH_FAILED, &text) == CUDA_SUCCESS);
  CHECK(std::string(text) == "a kernel failed");
  CHECK(Driver().cuGetErrorName(static_cast<CUresult>(12345), &text) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("work that fails is told by the next wait, and what is behind it does not run") {
  Session session;
  CUdeviceptr values = session.Upload(std::vector<int>(10));
  CHECK(Driver().cuCtxSynchronize() == CUDA_SUCCESS);
  int count = 10;
  Simulation().FailWork('k', 2, CUDA_ERROR_LAUNCH_FAILED);
  CUresult enqueued = CUDA_SUCCESS;
  for (int i = 0; i < 3; ++i)
    if (enqueued == CUDA_SUCCESS) enqueued = session.Launch("increment", 1, 10, {&values, &count});
  CHECK(Driver().cuStreamSynchronize(nullptr) == CUDA_ERROR_LAUNCH_FAILED);
  int seen = 0;
  CHECK(Simulation().Peek(values, &seen, sizeof seen) == 1);
  CHECK(seen == 1);
  CHECK(Driver().cuStreamQuery(nullptr) == CUDA_ERROR_LAUNCH_FAILED);
}

TEST_CASE("a lost device fails every call, and lets everything go") {
  Session session;
  CUdeviceptr memory = 0;
  CUevent event = nullptr;
  CHECK(Driver().cuMemAlloc(&memory, 8) == CUDA_SUCCESS);
  CHECK(Driver().cuEventCreate(&event, 0) == CUDA_SUCCESS);
  Simulation().LoseDevice(0, CUDA_ERROR_ECC_UNCORRECTABLE);
  CHECK(Driver().cuMemsetD8Async(memory, 0, 8, nullptr) == CUDA_ERROR_ECC_UNCORRECTABLE);
  CHECK(Driver().cuEventRecord(event, nullptr) == CUDA_ERROR_ECC_UNCORRECTABLE);
  CHECK(Driver().cuCtxSynchronize() == CUDA_ERROR_ECC_UNCORRECTABLE);
  CHECK(Driver().cuEventDestroy(event) == CUDA_ERROR_ECC_UNCORRECTABLE);
  CHECK(Driver().cuMemFree(memory) == CUDA_ERROR_ECC_UNCORRECTABLE);
  CHECK(session.Count().device_allocations == 0);
  CHECK(session.Count().events == 0);
}

TEST_CASE("what is kept is counted") {
  Session session;
  CUdeviceptr memory = 0;
  CUstream stream = nullptr;
  CHECK(Driver().cuMemAlloc(&memory, 100) == CUDA_SUCCESS);
  CHECK(Driver().cuStreamCreate(&stream, 0) == CUDA_SUCCESS);
  const Counters counters = session.Count();
  CHECK(counters.device_allocations == 1);
  CHECK(counters.device_bytes == 100);
  CHECK(counters.streams == 1);
  CHECK(counters.retained_contexts == 1);
  CHECK(Driver().cuMemFree(memory) == CUDA_SUCCESS);
  CHECK(Driver().cuStreamDestroy(stream) == CUDA_SUCCESS);
  CHECK(Driver().cuStreamDestroy(stream) == CUDA_ERROR_INVALID_HANDLE);
}

}  // namespace
}  // namespace rewire::simulated_cuda::test
