// SPDX-License-Identifier: Apache-2.0
// Random programs with and without bound outputs: the same bits. And each rule of the output plan switched
// off: found out.
//
// REWIRE_RANDOM_SEED=n runs program n alone. REWIRE_RANDOM_PROGRAMS=n runs n of them, and
// REWIRE_RANDOM_FIRST=n begins with program n: a nightly run takes programs that no run before it has seen.
#include <catch2/catch.hpp>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "rewire/executable_format/isa.h"
#include "rewire/tests/vm/outputs/random/differential.h"

namespace rewire::test {
namespace {

constexpr std::uint64_t kPrograms = 20000;

std::uint64_t Setting(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

// Some programs are analyzed under a limit that none keeps to.
PlanRules RulesFor(std::uint64_t seed) {
  PlanRules rules;
  if (seed % 64 == 63) rules.max_state_entries = 1;
  return rules;
}

void Report(const RandomProgram& program, const PlanRules& rules, const std::string& difference) {
  std::printf("seed %llu: %s\n", static_cast<unsigned long long>(program.seed), difference.c_str());
  std::printf("%s\n", Shrunk(program, rules).text.c_str());
}

void Print(const Histogram& histogram) {
  const auto share = [](std::uint64_t part, std::uint64_t whole) {
    return 100.0 * static_cast<double>(part) / static_cast<double>(whole);
  };
  std::printf("%llu programs: %.1f %% with branches, %.1f %% with calls, %.1f %% with loops\n",
              static_cast<unsigned long long>(histogram.programs),
              share(histogram.branches, histogram.programs), share(histogram.calls, histogram.programs),
              share(histogram.loops, histogram.programs));
  for (const auto& [opcode, count] : histogram.opcodes)
    std::printf("  %8llu %s\n", static_cast<unsigned long long>(count), opcode.c_str());
  std::printf("bound leaves:\n");
  for (const auto& [verdict, count] : histogram.verdicts)
    std::printf("  %8llu %s\n", static_cast<unsigned long long>(count), verdict.c_str());
  std::printf("leaves in place that one instruction makes:\n");
  for (const auto& [mnemonic, count] : histogram.makers)
    std::printf("  %8llu %s\n", static_cast<unsigned long long>(count), mnemonic.c_str());
  std::printf("%.1f %% of %llu allocated leaves outside loops were made in place; %llu bindings refused\n",
              share(histogram.rewired, histogram.allocated),
              static_cast<unsigned long long>(histogram.allocated),
              static_cast<unsigned long long>(histogram.refused));
  std::printf("%.1f %% with bounded memory, %.1f %% of them met the bound\n",
              share(histogram.memory_bounded, histogram.programs),
              share(histogram.memory_exact, histogram.memory_bounded));
}

TEST_CASE("random programs give the same values with and without bound outputs") {
  const std::uint64_t only = Setting("REWIRE_RANDOM_SEED", UINT64_MAX);
  if (only != UINT64_MAX) {
    const RandomProgram program = GenerateProgram(only);
    std::printf("%s\n", program.text.c_str());
    const std::string difference = FindDifference(program, RulesFor(only), nullptr);
    if (!difference.empty()) Report(program, RulesFor(only), difference);
    CHECK(difference.empty());
    return;
  }
  const std::uint64_t count = Setting("REWIRE_RANDOM_PROGRAMS", kPrograms);
  const std::uint64_t first = Setting("REWIRE_RANDOM_FIRST", 0);
  std::printf("seeds %llu to %llu\n", static_cast<unsigned long long>(first),
              static_cast<unsigned long long>(first + count - 1));
  Histogram histogram;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    const RandomProgram program = GenerateProgram(seed);
    const std::string difference = FindDifference(program, RulesFor(seed), &histogram);
    if (difference.empty()) continue;
    Report(program, RulesFor(seed), difference);
    FAIL("seed " << seed << ": " << difference);
  }
  Print(histogram);
  if (count < kPrograms) return;
  for (const OpcodeInfo& info : kOpcodes) {
    INFO(info.mnemonic);
    CHECK(histogram.opcodes[std::string(info.mnemonic)] >= 1000);
  }
  CHECK(histogram.branches * 100 >= histogram.programs * 30);
  CHECK(histogram.calls * 100 >= histogram.programs * 20);
  CHECK(histogram.loops * 100 >= histogram.programs * 10);
  CHECK(histogram.rewired * 100 >= histogram.allocated * 70);
  CHECK(histogram.refused >= 100);
  CHECK(histogram.memory_bounded >= 1000);
  for (const char* verdict :
       {"in place", "the bound memory is strided", "the bound memory is not aligned as the kernels need",
        "the bound memory overlaps an input of the same call", "the value was made elsewhere",
        "the donated input is still read when the output is first written"}) {
    INFO(verdict);
    CHECK(histogram.verdicts[verdict] >= 100);
  }
  for (const char* maker : {"alloc_tensor", "alloc_tensor_reg", "device_copy", "invoke", "shape_of"}) {
    INFO(maker);
    CHECK(histogram.makers[maker] >= 100);
  }
  for (int reason = 1; reason <= static_cast<int>(CopyReason::kTooLarge); ++reason) {
    const char* text = CopyReasonText(static_cast<CopyReason>(reason));
    INFO(text);
    CHECK(histogram.verdicts[text] >= 100);
  }
}

// How many programs it takes to see that the plan is wrong.
std::uint64_t ProgramsUntilCaught(const PlanRules& rules) {
  for (std::uint64_t seed = 0; seed < kPrograms; ++seed) {
    const RandomProgram program = GenerateProgram(seed);
    const std::string difference = FindDifference(program, rules, nullptr);
    if (difference.empty()) continue;
    Report(program, rules, difference);
    return seed + 1;
  }
  return kPrograms + 1;
}

TEST_CASE("each rule of the output plan switched off is caught") {
  PlanRules rules;
  SECTION("a") { rules.a = false; }
  SECTION("b") { rules.b = false; }
  SECTION("c") { rules.c = false; }
  const std::uint64_t programs = ProgramsUntilCaught(rules);
  std::printf("without rule %s: caught after %llu programs\n",
              !rules.a   ? "a"
              : !rules.b ? "b"
                         : "c",
              static_cast<unsigned long long>(programs));
  CHECK(programs <= kPrograms);
}

}  // namespace
}  // namespace rewire::test
