// SPDX-License-Identifier: Apache-2.0
// Stages of tasks on real threads.
#include <atomic>
#include <catch2/catch.hpp>
#include <cstdint>
#include <utility>
#include <vector>

#include "rewire/kernels/cpu/support/parallel.h"
#include "rewire/tests/kernels/kernel_call.h"
#include "rewire/tests/kernels/targets.h"
#include "rewire/vm/thread_pool.h"

namespace rewire::test {
namespace {

ThreadPool* pool = nullptr;
std::atomic<bool> stop{false};

const RewireKernelApi* PoolApi() {
  static const RewireKernelApi kApi = [] {
    RewireKernelApi api{};
    api.struct_size = sizeof(RewireKernelApi);
    api.version = REWIRE_KERNEL_API_VERSION;
    api.parallel_for = [](std::int64_t begin, std::int64_t end, std::int64_t grain,
                          void (*body)(void*, std::int64_t, std::int64_t),
                          void* data) { pool->ParallelFor(begin, end, grain, body, data); };
    api.thread_count = [] { return pool->thread_count(); };
    api.cancelled = [] { return stop.load() ? 1 : 0; };
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
      auto done =
          kernel::cpu::ParallelStages(kStages, tasks, [&](std::int64_t stage, std::int64_t task, auto&) {
            std::int64_t sum = 0;
            for (const std::int64_t before : sums[stage]) sum += before;
            sums[stage + 1][task] = sum % 1000 + 1;
          });
      REQUIRE(done.ok());
      std::int64_t expected = 1;
      for (std::int64_t stage = 0; stage < kStages; ++stage) expected = expected * tasks % 1000 + 1;
      for (const std::int64_t sum : sums.back()) CHECK(sum == expected);
    }
    pool = nullptr;
  }
}

// A thread that is told to stop leaves its task undone; the others must not wait for it.
TEST_CASE("stages end on all threads when one is told to stop") {
  __rewire_kernel_api = PoolApi();
  for (const std::int32_t threads : {1, 2, 3}) {
    const std::shared_ptr<ThreadPool> made = ThreadPool::Make(threads);
    pool = made.get();
    auto done =
        kernel::cpu::ParallelStages(1000, 3, [](std::int64_t stage, std::int64_t, kernel::cpu::Pace& pace) {
          if (stage == 5) stop = true;
          static_cast<void>(pace.Spend(kernel::cpu::kPace));
        });
    CHECK(!done.ok());
    stop = false;
    pool = nullptr;
  }
}

TEST_CASE("a parallel loop ends on all threads when one is told to stop") {
  __rewire_kernel_api = PoolApi();
  const std::shared_ptr<ThreadPool> made = ThreadPool::Make(2);
  pool = made.get();
  std::atomic<std::int64_t> elements{0};
  const std::int64_t count = std::int64_t{1} << 40;
  auto done = kernel::cpu::ParallelFor(count, kernel::cpu::kGrain, [&](std::int64_t begin, std::int64_t end) {
    if (elements.fetch_add(end - begin) > 1000000) stop = true;
  });
  CHECK(!done.ok());
  CHECK(elements < count / 1000);
  stop = false;
  pool = nullptr;
}

// Runs a kernel over random images on real threads and on one, and compares all bits.
void CheckThreads(const std::string& kernel, const std::vector<HostTensor*>& inputs, const Shape& out_shape,
                  const AttributeList& attributes) {
  const auto run = [&](std::int32_t threads) {
    const std::shared_ptr<ThreadPool> made = ThreadPool::Make(threads);
    HostTensor out = HostTensor::Empty<float>(out_shape);
    std::vector<HostTensor*> tensors = inputs;
    tensors.push_back(&out);
    UseThreads(made.get());
    REQUIRE(Run(kernel, tensors, attributes) == "");
    UseThreads(nullptr);
    return out.values<float>();
  };
  const std::vector<float> expected = run(1);
  for (const std::int32_t threads : {2, 3, 4, 5}) {
    CAPTURE(kernel, threads);
    for (int i = 0; i < 3; ++i) REQUIRE(run(threads) == expected);
  }
}

// Each instruction set is tried: it computes a number of rows of its own at a time, and by them threads share
// the work.
TEST_CASE("convolutions and pools on real threads give what one thread gives") {
  ForEachTarget([] {
    // Small weights, of which each thread takes groups of tiles of its own, and large ones.
    for (const auto& [channels, size] :
         {std::pair<std::int64_t, std::int64_t>(10, 51), {64, 18}, {16, 29}, {12, 40}}) {
      HostTensor x = HostTensor::Random({1, size, size, channels}, 1);
      HostTensor w = HostTensor::Random({channels, channels, 3, 3}, 2);
      HostTensor bias = HostTensor::Random({channels}, 3);
      const Shape out = {1, size - 2, size - 2, channels};
      const std::int64_t packed = (channels + 15) / 16 * 16;
      HostTensor points = HostTensor::Empty<float>({36, packed, channels});
      HostTensor panels = HostTensor::Empty<float>({packed, channels * 9});
      REQUIRE(Run("rewire.packed.winograd_weights", {&w, &points}) == "");
      REQUIRE(Run("rewire.packed.pack", {&w, &panels}, {{"order", "OI"}}) == "");
      const AttributeList window = {{"channels", channels},
                                    {"kernel_shape", std::vector<std::int64_t>{3, 3}}};
      CheckThreads("rewire.packed.winograd", {&x, &points, &bias}, out, window);
      CheckThreads("rewire.packed.conv", {&x, &panels, &bias}, out, window);
    }
    HostTensor x = HostTensor::Random({1, 60, 101, 10}, 1);
    CheckThreads("rewire.max_pool", {&x}, {1, 59, 100, 10},
                 {{"kernel_shape", std::vector<std::int64_t>{2, 2}}, {"layout", "NHWC"}});
  });
}

}  // namespace
}  // namespace rewire::test
