// SPDX-License-Identifier: Apache-2.0
// Verifying and linking a file cost work that is linear in the file in every direction in which it can grow,
// and bounded where that is not possible.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdio>

#include "rewire/executable_format/module_size.h"
#include "rewire/executable_format/verifier.h"
#include "rewire/tests/executable_format/import/memory_watch.h"
#include "rewire/tests/vm/link_cost/cpu_seconds.h"
#include "rewire/tests/vm/link_cost/growing_modules.h"
#include "rewire/vm/link/program_rep.h"
#include "rewire/vm/plan/output_plan.h"

#ifndef __has_feature
#define __has_feature(feature) 0
#endif

namespace rewire::test {
namespace {

constexpr std::uint32_t kFewest = 1000;
constexpr std::uint32_t kStep = 4;
constexpr std::size_t kMostBytes = std::size_t{2} << 30;

#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || !defined(NDEBUG)
constexpr double kSlower = 30;
constexpr std::uint32_t kMost = 16000;
#else
constexpr double kSlower = 1;
constexpr std::uint32_t kMost = 64000;
#endif

struct Cost {
  std::uint64_t verify = 0;  // units of work
  std::uint64_t link = 0;
  std::size_t bytes = 0;  // that were held at once
  std::uint64_t size = 0;
  double seconds = 0;  // of this process' CPU
  std::string failure;
  bool in_place = false;
};

Cost CostOf(const GrowingModule& growing, std::uint32_t n) {
  Cost cost;
  Module module = growing.make(n);
  cost.size = ModuleSize(module);
  const FormatLimits limits = GrowingFormatLimits();
  LinkOptions options = GrowingLinkOptions();
  const tvm::MemoryWatch watch;
  const double start = CpuSeconds();
  WorkMeter meter(VerifierBudget(cost.size, limits));
  const Status verified = VerifyModule(module, limits, &meter);
  cost.verify = meter.spent();
  if (verified) {
    const Result<Executable> executable = Executable::FromModule(std::move(module), limits);
    const Result<Program> program = Program::Link(*executable, std::move(options));
    if (program) {
      cost.link = program->rep().link_work;
      const Array<LeafPlan>& leaves = program->rep().plans[0].leaves;
      cost.in_place =
          std::all_of(leaves.begin(), leaves.end(), [](const LeafPlan& leaf) { return leaf.rewired; });
    } else {
      cost.failure = program.error().message();
    }
  } else {
    cost.failure = verified.error().message();
  }
  cost.seconds = CpuSeconds() - start;
  cost.bytes = watch.peak();
  return cost;
}

void CheckGrowth(std::uint64_t before, std::uint64_t after, double factor) {
  CHECK(static_cast<double>(after) <= factor * kTolerance * static_cast<double>(before));
}

TEST_CASE("work to verify and link grows with the file and no faster") {
  for (const GrowingModule& growing : GrowingModules()) {
    const Cost least = CostOf(growing, kFewest);
    Cost before = least;
    for (std::uint32_t n = kFewest;;) {
      INFO(growing.name << ", " << n << " elements: " << before.failure);
      CHECK(before.failure.empty());
      CHECK(before.bytes < kMostBytes);
      CHECK((before.in_place || !growing.in_place));
      if (n == kMost) break;
      n *= kStep;
      const Cost cost = CostOf(growing, n);
      CheckGrowth(before.verify, cost.verify, kStep);
      CheckGrowth(before.link, cost.link, kStep);
      before = cost;
    }
    constexpr std::uint32_t kGrowth = kMost / kFewest;
    CheckGrowth(least.verify, before.verify, kGrowth);
    CheckGrowth(least.link, before.link, kGrowth);
    std::printf("%-40s verify %9llu to %10llu (%.2f of linear), link %9llu to %10llu (%.2f), %zu MB\n",
                growing.name.c_str(), static_cast<unsigned long long>(least.verify),
                static_cast<unsigned long long>(before.verify),
                static_cast<double>(before.verify) / static_cast<double>(least.verify * kGrowth),
                static_cast<unsigned long long>(least.link), static_cast<unsigned long long>(before.link),
                static_cast<double>(before.link) / static_cast<double>(least.link * kGrowth),
                before.bytes >> 20);
  }
}

TEST_CASE("what cannot be linear ends at its budget") {
  for (const GrowingModule& growing : ExplodingModules()) {
    for (const std::uint32_t n : {kFewest, 4 * kFewest, 16 * kFewest}) {
      const Cost cost = CostOf(growing, n);
      INFO(growing.name << ", " << n << " elements: " << cost.failure);
      // The work that has been spent when the budget was found to be exceeded: one block or instruction more.
      CHECK(cost.verify + cost.link <= 3 * DefaultWork(cost.size));
      CHECK(cost.bytes < kMostBytes);
      const bool by_limit = cost.failure.find("raise FormatLimits::verifier_steps") != std::string::npos ||
                            cost.failure.find("bytes of state to verify; the limit is") != std::string::npos;
      CHECK((cost.failure.empty() || by_limit));
    }
  }
}

TEST_CASE("a file of 100 KB is opened and linked, or refused, within a second") {
  std::vector<GrowingModule> all = GrowingModules();
  for (GrowingModule& more : ExplodingModules()) all.push_back(std::move(more));
  for (const GrowingModule& growing : all) {
    const std::uint64_t size = ModuleSize(growing.make(kFewest));
    const auto n = static_cast<std::uint32_t>(std::min<std::uint64_t>(kFewest * 100000 / size, 50000));
    const Cost cost = CostOf(growing, n);
    INFO(growing.name << ", " << n << " elements, " << cost.size << " bytes: " << cost.failure);
    CHECK(cost.seconds < kSlower);
    std::printf("%-40s %6u elements, %6llu bytes: %.3f s\n", growing.name.c_str(), n,
                static_cast<unsigned long long>(cost.size), cost.seconds);
  }
}

}  // namespace
}  // namespace rewire::test
