// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tests/bench/vm_statistics.h"

namespace rewire::bench {

// Two threads with a VM each over one Program run the typical op, against one thread that runs it alone.
// Times are of the threads' own CPU clocks, so that what else the machine does is left out and what the
// threads cost each other stays in.
struct ThreadScaling {
  Summary one;    // ns per op
  Summary two;    // ns per op, the slower thread
  Summary ratio;  // two / one, of pairs taken right after each other
};

// `pairs` pairs, on the two CPUs given.
ThreadScaling MeasureThreads(int pairs, int first_cpu, int second_cpu);

}  // namespace rewire::bench
