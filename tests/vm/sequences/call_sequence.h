// SPDX-License-Identifier: Apache-2.0
// A random sequence of calls of the C++ interface over one random program, held against fresh VMs.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "rewire/tests/vm/outputs/random/program_generator.h"

namespace rewire::test {

// The calls of many sequences.
struct SequenceTally {
  std::uint64_t runs = 0;                         // that were compared or had to fail
  std::map<std::string, std::uint64_t> calls;     // by kind
  std::map<std::string, std::uint64_t> outcomes;  // "right", or the code of the error
  std::map<std::string, std::uint64_t> bindings;  // bound leaves of successful runs, by how they were bound
};

// Makes random calls, which `seed` decides. They set inputs in all modes, bind outputs in all ways, run,
// trim, limit, cancel, let allocations fail and keep results. They go to ordinary VMs, VMs in static memory,
// VMs in a shared arena, and Programs. After each run it checks that:
//   - the values are those of a fresh VM that runs unbound over the same inputs;
//   - a run that nothing disturbs succeeds, and one that cannot succeed fails;
//   - no guard beside bound memory, no borrowed input and no kept result has changed.
// When everything is destroyed, it checks that the allocator has all memory back.
// Returns "", or the first difference with the calls that led to it.
std::string RunCallSequence(const RandomProgram& program, std::uint64_t seed, SequenceTally* tally);

}  // namespace rewire::test
