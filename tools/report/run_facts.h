// SPDX-License-Identifier: Apache-2.0
// The facts that vm-run --report knows of a run; the page and its advice are made from them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rewire/base/status.h"
#include "rewire/tools/measure/profile.h"
#include "rewire/tools/measure/statistics.h"
#include "rewire/tools/report/cpu_speed.h"
#include "rewire/tools/report/memory_log.h"
#include "rewire/vm/memory_bound.h"
#include "rewire/vm/output.h"
#include "rewire/vm/program.h"

namespace rewire::tools {

// An instruction that calls a kernel. Times are nanoseconds.
struct SiteFacts {
  const Profiler::Site* site = nullptr;
  std::string arguments;      // of its first call in the shown run; empty if that run did not come here
  OperationCount work;        // of that call
  Percentiles times;          // of all its calls in all runs
  UsualTime usual;            // in a run
  double share = 0;           // of the usual time of a run, 0 to 1
  double attainable = 0;      // nanoseconds that this CPU would need for a call, by its operations and bytes
  std::string after, before;  // operators of the nodes whose calls come before and after it in the shown run
};

struct OutputFacts {
  std::string name;
  OutputPlan plan;
};

struct RunFacts {
  std::string file;
  std::string function;
  std::vector<std::int64_t> run_times;  // nanoseconds, in order
  Percentiles times;                    // of these
  CpuSpeed cpu;
  std::vector<SiteFacts> sites;        // the one that usually takes most time first
  double outside = 0;                  // share of the usual time that no kernel took
  std::vector<std::size_t> disturbed;  // runs that took much longer than usual
  Profiler::Run shown;                 // the run whose time is nearest to the median
  std::vector<OutputFacts> outputs;
  MemoryBound bound;  // for the sizes of this run's inputs
  std::uint64_t peak_bytes = 0;
};

// Raises the CPU's figures to the best that is known of it, and then says what each call could reach. That is
// what was measured, or a call of these runs that did better, such as one in bf16 or from the cache.
void AddAttainable(RunFacts* facts);

// `sizes` are the values of symbolic dimensions in this run.
RunFacts FactsOf(const Program& program, std::uint32_t function, const Profiler& profiler,
                 const CpuSpeed& cpu, const Array<std::pair<std::string, std::int64_t>>& sizes);

}  // namespace rewire::tools
