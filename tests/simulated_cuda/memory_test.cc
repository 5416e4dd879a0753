// SPDX-License-Identifier: Apache-2.0
// Memory of the simulated CUDA driver: what the host can reach, pools in the order of streams, pinned memory.
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <csignal>
#include <cstring>
#include <vector>

#include "rewire/tests/simulated_cuda/driver.h"
#include "rewire/tests/support/in_child.h"

namespace rewire::simulated_cuda::test {
namespace {

CUmemoryPool Pool() {
  CUmemoryPool pool = nullptr;
  REQUIRE(Driver().cuDeviceGetDefaultMemPool(&pool, 0) == CUDA_SUCCESS);
  return pool;
}

std::uint64_t PoolAttribute(CUmemPool_attribute attribute) {
  std::uint64_t value = 0;
  REQUIRE(Driver().cuMemPoolGetAttribute(Pool(), attribute, &value) == CUDA_SUCCESS);
  return value;
}

TEST_CASE("copies in all directions, and fills of each width") {
  Session session;
  std::vector<unsigned> values(64, 0);
  CUdeviceptr a = session.Upload(values), b = session.Upload(values);
  CHECK(Driver().cuMemsetD32Async(a, 0x01020304, 64, nullptr) == CUDA_SUCCESS);
  CHECK(Driver().cuMemsetD16Async(a + 2, 0x5566, 1, nullptr) == CUDA_SUCCESS);
  CHECK(Driver().cuMemsetD8Async(a + 255, 0x77, 1, nullptr) == CUDA_SUCCESS);
  CHECK(Driver().cuMemcpyDtoDAsync(b, a, 256, nullptr) == CUDA_SUCCESS);
  values = session.Download<unsigned>(b, 64);
  CHECK(values[0] == 0x55660304);
  CHECK(values[1] == 0x01020304);
  CHECK(values[63] == 0x77020304);
  unsigned one = 0;
  CHECK(Driver().cuMemcpyAsync(reinterpret_cast<CUdeviceptr>(&one), b + 252, 4, nullptr) == CUDA_SUCCESS);
  CHECK(one == 0x77020304);
  CHECK(Simulation().Peek(b, &one, 4) == 1);
  CHECK(one == 0x55660304);
}

TEST_CASE("copies between two devices") {
  Session other(1);
  Session session(0);
  CUdeviceptr here = session.Upload(std::vector<int>{1, 2, 3});
  CHECK(Driver().cuCtxSynchronize() == CUDA_SUCCESS);
  CHECK(Driver().cuCtxSetCurrent(other.context) == CUDA_SUCCESS);
  CUdeviceptr there = other.Upload(std::vector<int>(3));
  CHECK(Driver().cuMemcpyPeerAsync(there, other.context, here, session.context, 12, nullptr) == CUDA_SUCCESS);
  CHECK(other.Download<int>(there, 3) == std::vector<int>{1, 2, 3});
  CHECK(Driver().cuMemcpyPeerAsync(there, session.context, here, other.context, 12, nullptr) ==
        CUDA_ERROR_INVALID_VALUE);
  int ordinal = -1;
  CHECK(Driver().cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, there) == CUDA_SUCCESS);
  CHECK(ordinal == 1);
  CHECK(Driver().cuCtxSetCurrent(session.context) == CUDA_SUCCESS);
}

TEST_CASE("host code that reads device memory gets a signal and a text that says why") {
  Session session;
  CUdeviceptr device = session.Upload(std::vector<int>{42});
  CHECK(Driver().cuCtxSynchronize() == CUDA_SUCCESS);
  const auto outcome = rewire::test::InChild([device] {
    std::signal(SIGSEGV, SIG_DFL);  // what the simulation finds there before itself
    CUcontext context = nullptr;
    Driver().cuDevicePrimaryCtxRetain(&context, 0);
    const volatile int read = *reinterpret_cast<const volatile int*>(device);
    (void)read;
  });
  CHECK(WIFSIGNALED(outcome.status));
  CHECK(WTERMSIG(outcome.status) == SIGSEGV);
  CHECK(outcome.written == "simulated CUDA: host code used an address of device memory\n");
  // Nor does the system read it.
  std::array<int, 2> other = {};
  REQUIRE(pipe(other.data()) == 0);
  CHECK(write(other[1], reinterpret_cast<void*>(device), 4) == -1);
  close(other[0]);
  close(other[1]);
}

TEST_CASE("the pool gives a freed block to the same stream at once, to others behind an event") {
  Session session;
  std::uint64_t keep = ~std::uint64_t{0};
  CHECK(Driver().cuMemPoolSetAttribute(Pool(), CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep) == CUDA_SUCCESS);
  CUstream first = session.NewStream(), second = session.NewStream();
  CUevent event = nullptr;
  REQUIRE(Driver().cuEventCreate(&event, kEventDisableTiming) == CUDA_SUCCESS);
  CUdeviceptr a = 0, b = 0, c = 0, d = 0;
  CHECK(Driver().cuMemAllocAsync(&a, 1000, first) == CUDA_SUCCESS);
  CHECK(Driver().cuMemsetD8Async(a, 1, 1000, first) == CUDA_SUCCESS);
  CHECK(Driver().cuMemFreeAsync(a, first) == CUDA_SUCCESS);
  CHECK(Driver().cuMemAllocAsync(&b, 1000, first) == CUDA_SUCCESS);
  CHECK(b == a);
  CHECK(Driver().cuMemFreeAsync(b, first) == CUDA_SUCCESS);
  CHECK(Driver().cuMemAllocFromPoolAsync(&c, 1000, Pool(), second) == CUDA_SUCCESS);
  CHECK(c != a);
  CHECK(Driver().cuEventRecord(event, first) == CUDA_SUCCESS);
  CHECK(Driver().cuStreamWaitEvent(second, event, 0) == CUDA_SUCCESS);
  CHECK(Driver().cuMemAllocAsync(&d, 1000, second) == CUDA_SUCCESS);
  CHECK(d == a);
  CHECK(session.Count().device_allocations == 2);
  CHECK(session.Count().device_bytes == 2000);
  CHECK(Driver().cuMemFreeAsync(c, second) == CUDA_SUCCESS);
  CHECK(Driver().cuMemFreeAsync(d, second) == CUDA_SUCCESS);
  CHECK(PoolAttribute(CU_MEMPOOL_ATTR_USED_MEM_CURRENT) == 0);
  CHECK(PoolAttribute(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) >= 2000);
  CHECK(PoolAttribute(CU_MEMPOOL_ATTR_USED_MEM_HIGH) >= 2000);
  CHECK(Driver().cuStreamSynchronize(second) == CUDA_SUCCESS);
  CHECK(PoolAttribute(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) >= 2000);  // below the threshold
  CHECK(Driver().cuMemPoolTrimTo(Pool(), 0) == CUDA_SUCCESS);
  CHECK(PoolAttribute(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) == 0);
  keep = 0;
  CHECK(Driver().cuMemPoolSetAttribute(Pool(), CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep) == CUDA_SUCCESS);
  CHECK(Driver().cuEventDestroy(event) == CUDA_SUCCESS);
}

TEST_CASE("memory ends, and comes back") {
  Session session;
  Simulation().SetTotalMemory(0, 1 << 20);
  CUdeviceptr a = 0, b = 0;
  std::size_t free = 0, total = 0;
  CHECK(Driver().cuMemAlloc(&a, 700 << 10) == CUDA_SUCCESS);
  CHECK(Driver().cuMemAlloc(&b, 700 << 10) == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(Driver().cuMemAllocAsync(&b, 700 << 10, nullptr) == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(Driver().cuMemGetInfo(&free, &total) == CUDA_SUCCESS);
  CHECK(total == 1 << 20);
  CHECK(free < 400 << 10);
  CHECK(Driver().cuMemFree(a) == CUDA_SUCCESS);
  CHECK(Driver().cuMemAlloc(&b, 700 << 10) == CUDA_SUCCESS);
  CHECK(Driver().cuMemFree(b) == CUDA_SUCCESS);
}

TEST_CASE("pinned memory and addresses are described") {
  Session session;
  void* pinned = nullptr;
  REQUIRE(Driver().cuMemHostAlloc(&pinned, 100, kHostAllocDeviceMap) == CUDA_SUCCESS);
  std::vector<char> own(1000);
  CHECK(Driver().cuMemHostRegister(own.data(), 1000, 0) == CUDA_SUCCESS);
  CHECK(Driver().cuMemHostRegister(own.data() + 999, 1, 0) == CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
  CUdeviceptr device = session.Upload(own);
  CUmemorytype types[3] = {};
  for (int i = 0; i < 3; ++i) {
    const CUdeviceptr pointer[] = {device + 5, reinterpret_cast<CUdeviceptr>(pinned),
                                   reinterpret_cast<CUdeviceptr>(own.data() + 999)};
    CHECK(Driver().cuPointerGetAttribute(&types[i], CU_POINTER_ATTRIBUTE_MEMORY_TYPE, pointer[i]) ==
          CUDA_SUCCESS);
  }
  CHECK(types[0] == CU_MEMORYTYPE_DEVICE);
  CHECK(types[1] == CU_MEMORYTYPE_HOST);
  CHECK(types[2] == CU_MEMORYTYPE_HOST);
  int on_stack = 0;
  const auto unknown = reinterpret_cast<CUdeviceptr>(&on_stack);
  CHECK(Driver().cuPointerGetAttribute(&types[0], CU_POINTER_ATTRIBUTE_MEMORY_TYPE, unknown) ==
        CUDA_ERROR_INVALID_VALUE);
  CUpointer_attribute asked[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
  void* answers[] = {&types[0], &on_stack};
  CHECK(Driver().cuPointerGetAttributes(2, asked, answers, unknown) == CUDA_SUCCESS);
  CHECK(unsigned{types[0]} == 0);
  CHECK(on_stack == -2);
  CUdeviceptr base = 0;
  std::size_t bytes = 0;
  CHECK(Driver().cuMemGetAddressRange(&base, &bytes, device + 999) == CUDA_SUCCESS);
  CHECK(base == device);
  CHECK(bytes == 1000);

  // Kernels use pinned memory by its own address.
  std::memset(pinned, 0, 100);
  int count = 25;
  CUdeviceptr mapped = 0;
  CHECK(Driver().cuMemHostGetDevicePointer(&mapped, pinned, 0) == CUDA_SUCCESS);
  CHECK(session.Launch("increment", 1, 32, {&mapped, &count}) == CUDA_SUCCESS);
  CHECK(Driver().cuCtxSynchronize() == CUDA_SUCCESS);
  CHECK(static_cast<int*>(pinned)[24] == 1);
  CHECK(session.Count().pinned_bytes == 100);
  CHECK(Driver().cuMemHostUnregister(own.data()) == CUDA_SUCCESS);
  CHECK(Driver().cuMemHostUnregister(own.data()) == CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
  CHECK(Driver().cuMemFreeHost(pinned) == CUDA_SUCCESS);
}

TEST_CASE("memory that is not pinned makes a copy wait, pinned memory does not") {
  Session session;
  CUdeviceptr device = session.Upload(std::vector<int>(100));
  CHECK(Driver().cuCtxSynchronize() == CUDA_SUCCESS);
  const std::uint64_t before = session.Count().host_waits;
  std::vector<int> own(100);
  void* pinned = nullptr;
  REQUIRE(Driver().cuMemHostAlloc(&pinned, 400, 0) == CUDA_SUCCESS);
  CHECK(Driver().cuMemcpyDtoHAsync(pinned, device, 400, nullptr) == CUDA_SUCCESS);
  CHECK(session.Count().host_waits == before);
  CHECK(Driver().cuMemcpyDtoHAsync(own.data(), device, 400, nullptr) == CUDA_SUCCESS);
  CHECK(session.Count().host_waits == before + 1);
  CHECK(Driver().cuMemFreeHost(pinned) == CUDA_SUCCESS);
}

}  // namespace
}  // namespace rewire::simulated_cuda::test
