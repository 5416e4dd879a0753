// SPDX-License-Identifier: Apache-2.0
// Runs random programs on devices that fail, in every way that a host can, and looks for what must not be.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "rewire/tests/vm/outputs/random/program_generator.h"

namespace rewire::test {

// The counts of a drill.
struct DrillTally {
  std::uint64_t programs = 0;
  std::uint64_t calls = 0;
  std::map<std::string, std::uint64_t> ways;      // of calling
  std::map<std::string, std::uint64_t> outcomes;  // "right", or an error's code
  std::map<std::string, std::uint64_t> failures;  // injected ones that happened, by what failed
};

// The program of a seed. Every third one can be recorded.
RandomProgram DrillProgram(std::uint64_t seed);

// Runs it with two drivers and three devices. Empty if
// - each run that succeeded gave the values of an untroubled run,
// - each failure of a driver, each cancellation and each deadline was an error of the call or of the next
// run,
// - no device used the caller's memory after the call,
// - nothing was left: memory, streams, events, recordings, objects;
// else what was wrong.
std::string FindDrillFault(const RandomProgram& program, DrillTally* tally);

}  // namespace rewire::test
