// SPDX-License-Identifier: Apache-2.0
// Finding the bound of a run's memory costs at most the work that the host allows, whatever the program is.
#include <catch2/catch.hpp>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "rewire/executable_format/module_size.h"
#include "rewire/tests/vm/link_cost/cpu_seconds.h"
#include "rewire/tests/vm/link_cost/growing_modules.h"
#include "rewire/tests/vm/test_program.h"
#include "rewire/vm/memory_bound.h"

#ifndef __has_feature
#define __has_feature(feature) 0
#endif

namespace rewire::test {
namespace {

#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || !defined(NDEBUG)
constexpr double kMostBoundSeconds = 60;
#else
constexpr double kMostBoundSeconds = 2;
#endif

constexpr char kLoop[] = R"(
    .func main(n: integer, x: f32[64]) -> value
      %zero = load_consti 0
    loop:
      %s = alloc_storage _, alignment=64, f32[64], cpu
      %y = alloc_tensor %s, _, f32[64]
      if %n == %zero goto done else loop
    done:
      ret %y
    .end)";

TEST_CASE("a bound takes the work that it takes, and no unit less") {
  const Program program = ProgramOf(kLoop);
  const Result<MemoryBound> bound = program.TryMemoryBound();
  REQUIRE(bound);
  REQUIRE(bound->unbounded.empty());
  REQUIRE(bound->work > 1);
  MemoryBoundOptions options;
  options.work = bound->work;
  const Result<MemoryBound> same = program.TryMemoryBound({}, options);
  REQUIRE(same);
  CHECK(same->unbounded.empty());
  CHECK(same->bytes == bound->bytes);
  --options.work;
  const Result<MemoryBound> less = program.TryMemoryBound({}, options);
  REQUIRE(less);
  CHECK(less->bytes == 0);
  CHECK_THAT(less->unbounded, Catch::Contains("following the program on all its paths takes") &&
                                  Catch::Contains("the limit is " + std::to_string(options.work) +
                                                  "; raise MemoryBoundOptions::work"));
}

TEST_CASE("the search for a bound ends at its deadline") {
  const Program program = ProgramOf(kLoop);
  MemoryBoundOptions options;
  options.deadline = std::chrono::steady_clock::now();
  const Result<MemoryBound> late = program.TryMemoryBound({}, options);
  REQUIRE_FALSE(late);
  CHECK(late.error().code() == StatusCode::kDeadlineExceeded);
  CHECK_THAT(late.error().message(), Catch::Contains("MemoryBoundOptions::deadline"));
  options.deadline += std::chrono::hours(1);
  CHECK(program.TryMemoryBound({}, options));
}

TEST_CASE("no program makes the search for a bound take longer than its work") {
  std::vector<GrowingModule> all = GrowingModules();
  for (GrowingModule& more : ExplodingModules()) all.push_back(std::move(more));
  for (const GrowingModule& growing : all) {
    for (const std::uint32_t n : {1000u, 16000u}) {
      CAPTURE(growing.name, n);
      Module module = growing.make(n);
      const std::uint64_t allowed = DefaultWork(ModuleSize(module));
      const Result<Executable> executable = Executable::FromModule(std::move(module), GrowingFormatLimits());
      if (!executable) continue;  // it ends at the verifier's budget
      const Result<Program> program = Program::Link(*executable, GrowingLinkOptions());
      REQUIRE(program);
      const double begin = CpuSeconds();
      const Result<MemoryBound> bound = program->TryMemoryBound();
      CHECK(CpuSeconds() - begin < kMostBoundSeconds);
      REQUIRE(bound);
      // The work that was found to be too much: one instruction or one meeting of paths more.
      CHECK(bound->work <= 2 * allowed);
    }
  }
}

}  // namespace
}  // namespace rewire::test
