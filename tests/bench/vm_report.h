// SPDX-License-Identifier: Apache-2.0
// The figures as a table and as JSON.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "rewire/tests/bench/statistics.h"
#include "rewire/tests/bench/vm_cases.h"
#include "rewire/tests/bench/vm_load.h"
#include "rewire/tests/bench/vm_parameters.h"
#include "rewire/tests/bench/vm_threads.h"

namespace rewire::bench {

struct Figure {
  std::string name;
  Summary nanoseconds;
  std::optional<Target> target;
};

struct Report {
  std::vector<Figure> figures;
  std::vector<ThreadScaling> threads;  // none where there is one CPU
  std::optional<Residency> residency;
  std::optional<std::size_t> vm_bytes;  // of a VM over a gigabyte of parameters
  std::string machine;                  // CPU model, CPUs
  double load = 0;                      // average of the last minute, when the measurement began
  int samples = 0;                      // behind each median
};

// Targets that are missed are marked; they fail nothing, since a time on a busy machine proves nothing.
std::string TableOf(const Report& report);
std::string JsonOf(const Report& report);

}  // namespace rewire::bench
