// SPDX-License-Identifier: Apache-2.0
// Stands in for the VM while the fuzz drill runs a kernel.
//
// It gives the kernel its API and the memory of its arguments. Every block is exactly as large as it was
// asked for. So the address sanitizer sees an access to any byte outside it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rewire/tests/fuzz/kernels/call.h"
#include "rewire/vm/kernel/kernel.h"
#include "rewire/vm/kernel/row.h"

namespace rewire::test {

// One kernel of a library's table.
struct Entry {
  std::string name;
  RewirePackedFunction function;
  bool is_factory;
  RewireWorkspaceBound workspace;
};

const RewireKernelApi* DrillApi();

struct Outcome {
  bool succeeded = false;
  std::string error;           // "Kind: message"
  std::int64_t questions = 0;  // whether to go on
  double longest_gap = 0;      // microseconds between two of them, or from begin or to end
  bool skipped = false;        // too large to be run
};

// Runs the factory, if there is one, and the kernel. The kernel asks now and then whether to go on. The first
// `stop_after` questions are answered with yes, later ones with no. Three faults are reported and end the
// process: the kernel succeeds after a no, it does too much between two questions, or it takes workspace that
// it does not declare.
Outcome Run(const Entry& entry, const Call& call, std::int64_t stop_after);

// The most that a kernel did between two questions so far, in branches; 0 where they are not counted.
std::uint64_t MostBetweenQuestions();

// Prints what is being run and ends the process; called by sanitizers too, through their death callback.
[[noreturn]] void Report(const std::string& what);
void PrintRunning();

}  // namespace rewire::test
