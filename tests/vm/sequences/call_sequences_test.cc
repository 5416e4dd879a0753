// SPDX-License-Identifier: Apache-2.0
// Random sequences of calls: docs/embedding.md's contracts, whatever the order.
//
// REWIRE_SEQUENCE_SEED=n runs sequence n alone; REWIRE_SEQUENCES=n runs n of them, from
// REWIRE_SEQUENCE_FIRST.
#include <catch2/catch.hpp>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "rewire/tests/vm/sequences/call_sequence.h"

namespace rewire::test {
namespace {

std::uint64_t Setting(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

void Print(const char* title, const std::map<std::string, std::uint64_t>& counts) {
  std::printf("%s\n", title);
  for (const auto& [name, count] : counts)
    std::printf("  %9llu %s\n", static_cast<unsigned long long>(count), name.c_str());
}

TEST_CASE("any sequence of calls gives the values of unbound runs, and everything back") {
  std::uint64_t first = Setting("REWIRE_SEQUENCE_FIRST", 0);
  std::uint64_t count = Setting("REWIRE_SEQUENCES", 2000);
  if (const std::uint64_t only = Setting("REWIRE_SEQUENCE_SEED", UINT64_MAX); only != UINT64_MAX) {
    first = only;
    count = 1;
    std::printf("%s\n", GenerateProgram(only).text.c_str());
  }
  std::printf("sequences %llu to %llu\n", static_cast<unsigned long long>(first),
              static_cast<unsigned long long>(first + count - 1));
  SequenceTally tally;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    const std::string difference = RunCallSequence(GenerateProgram(seed), seed, &tally);
    if (!difference.empty()) FAIL("sequence " << seed << ": " << difference);
  }
  std::printf("%llu runs compared\n", static_cast<unsigned long long>(tally.runs));
  Print("calls:", tally.calls);
  Print("runs:", tally.outcomes);
  Print("bound leaves of successful runs:", tally.bindings);
  if (count < 2000) return;
  CHECK(tally.outcomes["right"] * 100 >= tally.runs * 50);
  for (const char* how :
       {"exact", "strided", "misaligned", "capacity", "allocator", "declining", "over input", "donated"}) {
    INFO(how);
    CHECK(tally.bindings[how] >= 50);
  }
  for (const char* code : {"memory limit", "step limit", "cancelled", "deadline exceeded", "out of memory",
                           "invalid argument"}) {
    INFO(code);
    CHECK(tally.outcomes[code] >= 20);
  }
}

}  // namespace
}  // namespace rewire::test
