// SPDX-License-Identifier: Apache-2.0
// Misuse that the simulated CUDA driver sees and reports.
#include <catch2/catch.hpp>
#include <vector>

#include "rewire/tests/simulated_cuda/driver.h"

namespace rewire::simulated_cuda::test {
namespace {

// Checks that exactly one misuse was seen, with this in its text.
void CheckSeen(Session& session, const std::string& text) {
  const auto seen = session.TakeViolations();
  REQUIRE(seen.size() == 1);
  CHECK_THAT(seen[0], Catch::Contains(text));
}

TEST_CASE("a copy out of range is refused, to the last byte") {
  Session session;
  CUdeviceptr device = session.Upload(std::vector<char>(100));
  std::vector<char> host(101);
  CHECK(Driver().cuMemcpyHtoDAsync(device + 1, host.data(), 99, nullptr) == CUDA_SUCCESS);
  CHECK(Driver().cuMemcpyHtoDAsync(device + 1, host.data(), 100, nullptr) == CUDA_ERROR_INVALID_VALUE);
  CheckSeen(session, "100 bytes at offset 1 of an allocation of 100 bytes on device 0");
  CHECK(Driver().cuMemcpyHtoDAsync(device, reinterpret_cast<void*>(device), 8, nullptr) ==
        CUDA_ERROR_INVALID_VALUE);
  CheckSeen(session, "the addresses are of other memory than the function is for");
  CHECK(Driver().cuMemsetD32Async(device + 2, 0, 1, nullptr) == CUDA_ERROR_INVALID_VALUE);
  CheckSeen(session, "is not aligned to 4 bytes");
}

TEST_CASE("freed memory is seen, in copies and in kernels") {
  Session session;
  CUdeviceptr device = 0;
  int value = 0, count = 1;
  CHECK(Driver().cuMemAllocAsync(&device, 100, nullptr) == CUDA_SUCCESS);
  CHECK(Driver().cuMemFreeAsync(device, nullptr) == CUDA_SUCCESS);
  CHECK(Driver().cuMemcpyHtoDAsync(device, &value, 4, nullptr) == CUDA_ERROR_INVALID_VALUE);
  CheckSeen(session, "is in no live allocation");
  CHECK(Driver().cuMemFreeAsync(device, nullptr) == CUDA_ERROR_INVALID_VALUE);
  CheckSeen(session, "is no allocation");
  CHECK(session.Launch("increment", 1, 1, {&device, &count}) == CUDA_SUCCESS);
  CheckSeen(session, "increment: ");
  CHECK(Driver().cuCtxSynchronize() == CUDA_ERROR_ILLEGAL_ADDRESS);
  CHECK(Driver().cuCtxSynchronize() == CUDA_ERROR_ILLEGAL_ADDRESS);  // for good
}

TEST_CASE("memory of the host that is not pinned is no argument of a kernel") {
  Session session;
  std::vector<int> own(10);
  auto pointer = reinterpret_cast<CUdeviceptr>(own.data());
  int count = 10;
  CHECK(session.Launch("increment", 1, 10, {&pointer, &count}) == CUDA_SUCCESS);
  CheckSeen(session, "is neither device memory nor pinned memory");
  CHECK(Driver().cuCtxSynchronize() == CUDA_ERROR_ILLEGAL_ADDRESS);
  CHECK(own == std::vector<int>(10));
}

TEST_CASE("two streams without an event between them") {
  Session session;
  CUstream first = session.NewStream(), second = session.NewStream();
  CUevent event = nullptr;
  REQUIRE(Driver().cuEventCreate(&event, 0) == CUDA_SUCCESS);
  CUdeviceptr device = 0;
  CHECK(Driver().cuMemAllocAsync(&device, 400, first) == CUDA_SUCCESS);

  SECTION("memory that the other stream made") {
    int count = 100;
    CHECK(session.Launch("increment", 1, 100, {&device, &count}, second) == CUDA_SUCCESS);
    CheckSeen(session, "used without waiting for the stream that made it");
  }
  SECTION("bytes that the other stream wrote") {
    CHECK(Driver().cuStreamSynchronize(first) == CUDA_SUCCESS);
    CHECK(Driver().cuMemsetD8Async(device, 1, 200, first) == CUDA_SUCCESS);
    CHECK(Driver().cuMemsetD8Async(device + 200, 2, 200, second) == CUDA_SUCCESS);  // other bytes
    CHECK(session.TakeViolations().empty());
    CHECK(Driver().cuMemsetD8Async(device + 199, 2, 1, second) == CUDA_SUCCESS);
    CheckSeen(session, "two streams use the same bytes");
  }
  SECTION("an event puts it right") {
    CHECK(Driver().cuMemsetD8Async(device, 1, 200, first) == CUDA_SUCCESS);
    CHECK(Driver().cuEventRecord(event, first) == CUDA_SUCCESS);
    CHECK(Driver().cuStreamWaitEvent(second, event, 0) == CUDA_SUCCESS);
    CHECK(Driver().cuMemsetD8Async(device, 2, 1, second) == CUDA_SUCCESS);
    CHECK(session.TakeViolations().empty());
  }
  CHECK(Driver().cuStreamSynchronize(first) == CUDA_SUCCESS);
  CHECK(Driver().cuMemsetD8Async(device, 2, 1, second) == CUDA_SUCCESS);
  CHECK(Driver().cuMemFreeAsync(device, first) == CUDA_SUCCESS);
  CheckSeen(session, "another stream may still use an allocation of 400 bytes");
  CHECK(Driver().cuCtxSynchronize() == CUDA_SUCCESS);
  CHECK(Driver().cuEventDestroy(event) == CUDA_SUCCESS);
}

TEST_CASE("a kernel that writes behind its memory") {
  Session session;
  CUdeviceptr device = 0;
  REQUIRE(Driver().cuMemAlloc(&device, 40) == CUDA_SUCCESS);
  long long at = 10;
  CHECK(session.Launch("write_far", 1, 1, {&device, &at}) == CUDA_SUCCESS);
  CHECK(Driver().cuMemFree(device) == CUDA_SUCCESS);
  CheckSeen(session, "an allocation of 40 bytes on device 0 was written behind its end");
}

TEST_CASE("a kernel that faults, traps or waits for nobody ends with the error of its kind") {
  Session session;
  CUdeviceptr device = session.Upload(std::vector<int>(8));
  SECTION("outside of all memory") {
    long long at = 1LL << 45;
    CHECK(session.Launch("write_far", 1, 1, {&device, &at}) == CUDA_SUCCESS);
    CHECK(Driver().cuCtxSynchronize() == CUDA_ERROR_ILLEGAL_ADDRESS);
    CheckSeen(session, "write_far: an access outside of all memory");
  }
  SECTION("trap") {
    CHECK(session.Launch("trap", 1, 64, {&device}) == CUDA_SUCCESS);
    CHECK(Driver().cuCtxSynchronize() == CUDA_ERROR_ILLEGAL_INSTRUCTION);
  }
  SECTION("stuck") {
    CHECK(session.Launch("wait_for_nobody", 1, 64, {&device}) == CUDA_SUCCESS);
    CHECK(Driver().cuCtxSynchronize() == CUDA_ERROR_LAUNCH_TIMEOUT);
    CheckSeen(session, "wait_for_nobody: threads wait at a barrier or shuffle for others that do not come");
  }
  // The device is as new once its last context is released.
  CHECK(Driver().cuDevicePrimaryCtxRelease(0) != CUDA_SUCCESS);
  CUcontext again = nullptr;
  CHECK(Driver().cuDevicePrimaryCtxRetain(&again, 0) == CUDA_SUCCESS);
  CHECK(Driver().cuMemsetD8Async(device, 0, 32, nullptr) == CUDA_SUCCESS);
  CHECK(session.Launch("sum_warps", 1, 8, {&device, &device}) == CUDA_SUCCESS);
  CHECK(Driver().cuCtxSynchronize() == CUDA_SUCCESS);
}

}  // namespace
}  // namespace rewire::simulated_cuda::test
