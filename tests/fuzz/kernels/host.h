// SPDX-License-Identifier: Apache-2.0
// What stands in for the VM while a kernel runs: the kernel API, in which every block is exactly as large as
// it was asked for, and the memory of a call's arguments, likewise, so that the address sanitizer sees each
// byte.
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

// Runs the factory, if there is one, and the kernel. `stop_after`: so many questions whether to go on are
// answered with yes, then with no. A kernel that succeeds after that, that does too much between two
// questions, or that takes workspace which it does not declare is reported and ends the process.
Outcome Run(const Entry& entry, const Call& call, std::int64_t stop_after);

// The most that a kernel did between two questions so far, in branches; 0 where they are not counted.
std::uint64_t MostBetweenQuestions();

// Prints what is being run and ends the process; called by sanitizers too, through their death callback.
[[noreturn]] void Report(const std::string& what);
void PrintRunning();

}  // namespace rewire::test
