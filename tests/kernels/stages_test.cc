// SPDX-License-Identifier: Apache-2.0
// Stages of tasks on real threads.
#include <catch2/catch.hpp>
#include <cstdint>
#include <vector>

#include "kernels/cpu/parallel.h"
#include "vm/thread_pool.h"

namespace rewire::test {
namespace {

ThreadPool* pool = nullptr;

const RewireKernelApi* PoolApi() {
  static const RewireKernelApi kApi = [] {
    RewireKernelApi api{};
    api.struct_size = sizeof(RewireKernelApi);
    api.version = REWIRE_KERNEL_API_VERSION;
    api.parallel_for = [](std::int64_t begin, std::int64_t end, std::int64_t grain,
                          void (*body)(void*, std::int64_t, std::int64_t),
                          void* data) { pool->ParallelFor(begin, end, grain, body, data); };
    api.thread_count = [] { return pool->thread_count(); };
    return api;
  }();
  return &kApi;
}

// Each task reads what all tasks of the stage before have written.
TEST_CASE("a stage sees all of the one before") {
  __rewire_kernel_api = PoolApi();
  for (const std::int32_t threads : {1, 2, 3}) {
    const std::shared_ptr<ThreadPool> made = ThreadPool::Make(threads);
    pool = made.get();
    for (const std::int64_t tasks : {1, 2, 7}) {
      constexpr std::int64_t kStages = 50;
      std::vector<std::vector<std::int64_t>> sums(kStages + 1, std::vector<std::int64_t>(tasks, 1));
      kernel::cpu::ParallelStages(kStages, tasks, [&](std::int64_t stage, std::int64_t task) {
        std::int64_t sum = 0;
        for (const std::int64_t before : sums[stage]) sum += before;
        sums[stage + 1][task] = sum % 1000 + 1;
      });
      std::int64_t expected = 1;
      for (std::int64_t stage = 0; stage < kStages; ++stage) expected = expected * tasks % 1000 + 1;
      for (const std::int64_t sum : sums.back()) CHECK(sum == expected);
    }
    pool = nullptr;
  }
}

}  // namespace
}  // namespace rewire::test
