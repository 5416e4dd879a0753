// SPDX-License-Identifier: Apache-2.0
// Kernels of the simulated CUDA driver: indices, shared memory, barriers, shuffles, votes, atomics,
// parameters.
#include <catch2/catch.hpp>
#include <cstring>
#include <numeric>
#include <vector>

#include "rewire/tests/simulated_cuda/driver.h"

namespace rewire::simulated_cuda::test {
namespace {

std::vector<int> Numbers(int count) {
  std::vector<int> values(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) values[static_cast<std::size_t>(i)] = i * 37 % 101 - 50;
  return values;
}

TEST_CASE("a kernel adds vectors whose last block is not full") {
  Session session;
  std::vector<float> a(1000), b(1000), sum(1000);
  for (std::size_t i = 0; i < a.size(); ++i) {
    a[i] = static_cast<float>(i);
    b[i] = static_cast<float>(1000 * i);
    sum[i] = static_cast<float>(1001 * i);
  }
  CUdeviceptr da = session.Upload(a), db = session.Upload(b), out = session.Upload(a);
  int count = 1000;
  CHECK(session.Launch("add", 4, 256, {&da, &db, &out, &count}) == CUDA_SUCCESS);
  CHECK(session.Download<float>(out, 1000) == sum);
  CHECK(session.Count().launches == 1);
}

TEST_CASE("a reduction by barriers and one by shuffles give the sums") {
  Session session;
  const std::vector<int> values = Numbers(1024);
  CUdeviceptr in = session.Upload(values), blocks = session.Upload(std::vector<int>(4)),
              warps = session.Upload(std::vector<int>(1024));
  CHECK(session.Launch("sum_blocks", 4, 256, {&in, &blocks}) == CUDA_SUCCESS);
  CHECK(session.Launch("sum_warps", 8, 128, {&in, &warps}) == CUDA_SUCCESS);
  const auto block_sums = session.Download<int>(blocks, 4);
  const auto warp_sums = session.Download<int>(warps, 1024);
  for (int i = 0; i < 4; ++i)
    CHECK(block_sums[i] == std::accumulate(values.begin() + i * 256, values.begin() + (i + 1) * 256, 0));
  for (int i = 0; i < 1024; ++i) {
    const auto first = values.begin() + i / 32 * 32;
    REQUIRE(warp_sums[i] == std::accumulate(first, first + 32, 0));
  }
}

TEST_CASE("a warp that is not full shuffles, and halves of a warp vote apart") {
  Session session;
  const std::vector<int> values = Numbers(32);
  CUdeviceptr in = session.Upload(values), out = session.Upload(std::vector<int>(32));
  CHECK(session.Launch("scan_part", 1, 20, {&in, &out}) == CUDA_SUCCESS);
  const auto sums = session.Download<int>(out, 20);
  std::vector<int> expected(20);
  std::partial_sum(values.begin(), values.begin() + 20, expected.begin());
  CHECK(sums == expected);

  CHECK(session.Launch("vote", 1, 32, {&in, &out}) == CUDA_SUCCESS);
  unsigned positive = 0;
  for (int i = 0; i < 32; ++i) positive |= static_cast<unsigned>(values[i] > 0) << i;
  const auto votes = session.Download<unsigned>(out, 32);
  CHECK(votes[3] == (positive & 0xffffU));
  CHECK(votes[30] == (positive & 0xffff0000U));
}

TEST_CASE("atomics of two streams at once lose nothing") {
  Session session;
  CUdeviceptr whole = session.Upload(std::vector<int>(2)), real = session.Upload(std::vector<float>(1));
  CUstream first = session.NewStream(), second = session.NewStream();
  CHECK(Driver().cuCtxSynchronize() == CUDA_SUCCESS);
  for (int i = 0; i < 5; ++i) {
    CHECK(session.Launch("count_threads", 10, 100, {&whole, &real}, first) == CUDA_SUCCESS);
    CHECK(session.Launch("count_threads", 10, 100, {&whole, &real}, second) == CUDA_SUCCESS);
  }
  CHECK(Driver().cuCtxSynchronize() == CUDA_SUCCESS);
  CHECK(session.Download<int>(whole, 2) == std::vector<int>{10000, 999});
  CHECK(session.Download<float>(real, 1) == std::vector<float>{5000});
}

TEST_CASE("a tiled product in dynamic shared memory") {
  Session session;
  const int n = 32;
  std::vector<float> a(n * n), b(n * n), expected(n * n);
  for (int i = 0; i < n * n; ++i) {
    a[i] = static_cast<float>(i % 7 - 3);
    b[i] = static_cast<float>(i % 11 - 5);
  }
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < n; ++j)
      for (int k = 0; k < n; ++k) expected[i * n + j] += a[i * n + k] * b[k * n + j];
  CUdeviceptr da = session.Upload(a), db = session.Upload(b), dc = session.Upload(a);
  int size = n;
  void* arguments[] = {&da, &db, &dc, &size};
  CUlaunchConfig config = {};
  config.gridDimX = config.gridDimY = n / 8;
  config.gridDimZ = config.blockDimZ = 1;
  config.blockDimX = config.blockDimY = 8;
  config.sharedMemBytes = 128 * sizeof(float);
  CHECK(Driver().cuLaunchKernelEx(&config, session.Kernel("product"), arguments, nullptr) == CUDA_SUCCESS);
  CHECK(session.Download<float>(dc, n * n) == expected);
}

TEST_CASE("threads that have left do not hold up a barrier") {
  Session session;
  CUdeviceptr in = session.Upload(Numbers(128)), count = session.Upload(std::vector<int>(1));
  int threads = 70;
  CHECK(session.Launch("count_positive", 1, 128, {&in, &count, &threads}) == CUDA_SUCCESS);
  int expected = 0;
  for (int i = 0; i < 70; ++i) expected += Numbers(128)[i] > 0 ? 1 : 0;
  CHECK(session.Download<int>(count, 1) == std::vector<int>{expected});
}

TEST_CASE("parameters by value are aligned as CUDA aligns them, one by one and packed") {
  Session session;
  struct {
    CUdeviceptr first, second;
  } pair = {session.Upload(std::vector<float>{1, 2}), session.Upload(std::vector<float>{3, 4})};
  char added = 5;
  double scale = 10;
  CHECK(session.Launch("swap_by_struct", 1, 2, {&pair, &added, &scale}) == CUDA_SUCCESS);
  CHECK(session.Download<float>(pair.first, 2) == std::vector<float>{30, 40});
  CHECK(session.Download<float>(pair.second, 2) == std::vector<float>{6, 7});

  char packed[32] = {};
  std::memcpy(packed, &pair, 16);
  packed[16] = 1;
  std::memcpy(packed + 24, &scale, 8);
  std::size_t size = sizeof packed;
  void* extra[] = {reinterpret_cast<void*>(1), packed, reinterpret_cast<void*>(2), &size, nullptr};
  CHECK(Driver().cuLaunchKernel(session.Kernel("swap_by_struct"), 1, 1, 1, 2, 1, 1, 0, nullptr, nullptr,
                                extra) == CUDA_SUCCESS);
  CHECK(session.Download<float>(pair.first, 2) == std::vector<float>{60, 70});
  CHECK(session.Download<float>(pair.second, 2) == std::vector<float>{31, 41});
}

TEST_CASE("a kernel can say by which address the host knows its memory") {
  Session session;
  CUdeviceptr out = session.Upload(std::vector<std::uint64_t>(4));
  CUdeviceptr inside = out + 16;
  CHECK(session.Launch("write_address", 1, 1, {&inside}) == CUDA_SUCCESS);
  CHECK(session.Download<std::uint64_t>(out, 4)[2] == inside);
}

TEST_CASE("variables of a module can be read and written") {
  Session session;
  const std::string image = ImageFile("test_kernels");
  CUmodule module = nullptr;
  REQUIRE(Driver().cuModuleLoadData(&module, image.data()) == CUDA_SUCCESS);
  CUdeviceptr table = 0;
  std::size_t bytes = 0;
  REQUIRE(Driver().cuModuleGetGlobal(&table, &bytes, module, "table") == CUDA_SUCCESS);
  CHECK(bytes == 16);
  CHECK(Driver().cuModuleGetGlobal(&table, &bytes, module, "no_table") == CUDA_ERROR_NOT_FOUND);
  const int changed[] = {7, 8};
  CHECK(Driver().cuMemcpyHtoDAsync(table + 4, changed, 8, nullptr) == CUDA_SUCCESS);
  CUfunction function = nullptr;
  REQUIRE(Driver().cuModuleGetFunction(&function, module, "read_table") == CUDA_SUCCESS);
  CHECK(Driver().cuModuleGetFunction(&function, module, "no_kernel") == CUDA_ERROR_NOT_FOUND);
  CUdeviceptr out = session.Upload(std::vector<int>(4));
  void* arguments[] = {&out};
  CHECK(Driver().cuLaunchKernel(function, 1, 1, 1, 4, 1, 1, 0, nullptr, arguments, nullptr) == CUDA_SUCCESS);
  CHECK(session.Download<int>(out, 4) == std::vector<int>{1, 7, 8, 4});
  CHECK(Driver().cuModuleUnload(module) == CUDA_SUCCESS);
  CHECK(Driver().cuLaunchKernel(function, 1, 1, 1, 4, 1, 1, 0, nullptr, arguments, nullptr) ==
        CUDA_ERROR_INVALID_HANDLE);
}

TEST_CASE("images of a GPU and other bytes are refused") {
  Session session;
  CUmodule module = nullptr;
  CHECK(Driver().cuModuleLoadData(&module, ".version 8.0\n.target sm_90\n") == CUDA_ERROR_NO_BINARY_FOR_GPU);
  std::string cubin = ImageFile("test_kernels");
  cubin[18] = static_cast<char>(190);  // the machine number of NVIDIA's
  cubin[19] = 0;
  char log[20] = "";
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log, reinterpret_cast<void*>(sizeof log)};
  CHECK(Driver().cuModuleLoadDataEx(&module, cubin.data(), 2, options, values) ==
        CUDA_ERROR_NO_BINARY_FOR_GPU);
  CHECK(std::string(log) == "the simulated CUDA ");
}

TEST_CASE("launches out of range are refused at once") {
  Session session;
  CUdeviceptr out = session.Upload(std::vector<int>(1));
  int count = 1;
  CHECK(session.Launch("increment", 0, 1, {&out, &count}) == CUDA_ERROR_INVALID_VALUE);
  CHECK(session.Launch("increment", 1, 1025, {&out, &count}) == CUDA_ERROR_INVALID_VALUE);
  CHECK(session.Launch("increment", 1, 1, {&out, &count}, nullptr, 49 << 10) == CUDA_ERROR_INVALID_VALUE);
  CUfunction function = session.Kernel("increment");
  CHECK(Driver().cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 64 << 10) ==
        CUDA_SUCCESS);
  CHECK(session.Launch("increment", 1, 1, {&out, &count}, nullptr, 49 << 10) == CUDA_SUCCESS);
  int blocks = 0;
  CHECK(Driver().cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, 256, 0) == CUDA_SUCCESS);
  CHECK(blocks == 8);
}

}  // namespace
}  // namespace rewire::simulated_cuda::test
