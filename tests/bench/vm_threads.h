// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "rewire/tests/bench/vm_statistics.h"

namespace rewire::bench {

// Two threads over one Program do some work, against one thread that does it alone. Two processes, which
// share nothing that they write, say how much of the rest is the machine's. Times are of the threads' own CPU
// clocks, so that what else the machine does is left out and what the threads cost each other stays in.
// Ratios are of runs taken right after each other.
struct ThreadScaling {
  std::string name;
  Summary one;                 // ns per op
  Summary two;                 // ns per op, the slower thread
  Summary processes;           // ns per op, the slower of two processes
  Summary ratio;               // two / one
  Summary throughput;          // ops in a time by two threads, as a multiple of those by one
  Summary process_throughput;  // the same by two processes
};

// `pairs` rounds of one thread, two threads and two processes, on the two CPUs given, of the typical op
// inside the interpreter, of whole runs by a VM for each thread, and of Program::TryRun. Forks: to be called
// while no other thread runs.
std::vector<ThreadScaling> MeasureThreads(int pairs, int first_cpu, int second_cpu);

}  // namespace rewire::bench
