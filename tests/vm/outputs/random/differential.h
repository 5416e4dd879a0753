// SPDX-License-Identifier: Apache-2.0
// Runs a program with and without bound outputs and looks for a difference.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "rewire/executable_format/executable.h"
#include "rewire/tests/vm/outputs/output_harness.h"
#include "rewire/tests/vm/outputs/random/program_generator.h"
#include "rewire/vm/plan/output_plan.h"

namespace rewire::test {

// The statements that programs and runs were made of.
struct Histogram {
  std::uint64_t programs = 0;
  std::uint64_t branches = 0;
  std::uint64_t calls = 0;
  std::uint64_t loops = 0;
  std::map<std::string, std::uint64_t> opcodes;  // instructions in the programs
  // Bound leaves by what became of them: "in place", or the reason for the copy.
  std::map<std::string, std::uint64_t> verdicts;
  // Leaves in place that one instruction of main makes, by its mnemonic.
  std::map<std::string, std::uint64_t> makers;
  // Leaves of programs without loops that the unbound run allocated, and how many of them a run in exactly
  // fitting memory made in place.
  std::uint64_t allocated = 0;
  std::uint64_t rewired = 0;
  // Programs whose memory is bounded before the run, and those of them whose bound the first run meets.
  std::uint64_t memory_bounded = 0;
  std::uint64_t memory_exact = 0;
  std::uint64_t refused = 0;  // bindings that are errors: an input's memory that another output may return

  void Add(const RandomProgram& program, const Module& module);
};

// Links the program under these rules and runs it unbound, bound in full, bound in random ways and unbound
// again. Empty when every value was the same in all runs; else what differed.
std::string FindDifference(const RandomProgram& program, const PlanRules& rules, Histogram* histogram);

// The program without the lines that the difference does not need.
RandomProgram Shrunk(const RandomProgram& program, const PlanRules& rules);

}  // namespace rewire::test
