// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "rewire/tests/bench/statistics.h"

namespace rewire::bench {

// How work scales to two threads over one Program, against one thread that does it alone. Two processes do
// the same work. They share nothing that they write, so they show how much of the slowdown is the machine's.
// Times come from the threads' own CPU clocks. So they leave out what else the machine does, and include what
// the threads cost each other. Ratios are of runs taken right after each other.
struct ThreadScaling {
  std::string name;
  Summary one;                 // ns per op
  Summary two;                 // ns per op, the slower thread
  Summary processes;           // ns per op, the slower of two processes
  Summary ratio;               // two / one
  Summary throughput;          // ops in a time by two threads, as a multiple of those by one
  Summary process_throughput;  // the same by two processes
};

// Measures three kinds of work: the typical op inside the interpreter, whole runs with a VM for each thread,
// and Program::TryRun. Each is measured in `pairs` rounds of one thread, two threads and two processes, on
// the two CPUs given. This function forks, so call it while no other thread runs.
std::vector<ThreadScaling> MeasureThreads(int pairs, int first_cpu, int second_cpu);

}  // namespace rewire::bench
