// SPDX-License-Identifier: Apache-2.0
// Random programs on devices that fail: no silent failure, no wrong value, no write after the return, no
// leak.
//
// REWIRE_DRILL_SEED=n runs program n alone and prints it. REWIRE_DRILL_PROGRAMS=n runs n of them, and
// REWIRE_DRILL_FIRST=n begins with program n: long runs take programs that no run before has seen.
#include <catch2/catch.hpp>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "rewire/tests/vm/device_drill/device_drill.h"

namespace rewire::test {
namespace {

constexpr std::uint64_t kPrograms = 6000;

std::uint64_t Setting(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

void Print(const char* what, const std::map<std::string, std::uint64_t>& counts) {
  std::printf("%s\n", what);
  for (const auto& [name, count] : counts)
    std::printf("  %8llu %s\n", static_cast<unsigned long long>(count), name.c_str());
}

TEST_CASE(
    "random programs on failing devices: each failure is told, and nothing uses memory after the call") {
  const std::uint64_t only = Setting("REWIRE_DRILL_SEED", UINT64_MAX);
  const bool one = only != UINT64_MAX;
  const std::uint64_t count = one ? 1 : Setting("REWIRE_DRILL_PROGRAMS", kPrograms);
  const std::uint64_t first = one ? only : Setting("REWIRE_DRILL_FIRST", 0);
  DrillTally tally;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    const RandomProgram program = DrillProgram(seed);
    if (one) std::printf("%s\n", program.text.c_str());
    const std::string fault = FindDrillFault(program, &tally);
    if (fault.empty()) continue;
    std::printf("%s\n", program.text.c_str());
    FAIL("seed " << seed << ": " << fault);
  }
  std::printf("%llu programs, %llu calls\n", static_cast<unsigned long long>(tally.programs),
              static_cast<unsigned long long>(tally.calls));
  Print("ways:", tally.ways);
  Print("outcomes:", tally.outcomes);
  Print("failures by what failed:", tally.failures);
  if (count < kPrograms) return;
  CHECK(tally.outcomes["right"] * 100 >= tally.calls * 30);
  for (const char* code : {"cancelled", "deadline exceeded", "run-time error"}) {
    INFO(code);
    CHECK(tally.outcomes[code] >= 50);
  }
  for (const char* kind : {"copy", "copy (late)", "kernel", "kernel (late)", "allocation", "free", "wait",
                           "event", "record", "replay"}) {
    INFO(kind);
    CHECK(tally.failures[kind] >= 3);
  }
}

}  // namespace
}  // namespace rewire::test
