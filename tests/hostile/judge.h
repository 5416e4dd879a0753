// SPDX-License-Identifier: Apache-2.0
// What a host does with a file from a stranger, and whether everything that is promised to it held: reads and
// verifies it, links it with the stock kernels, runs its functions, once as they are and once with outputs
// bound to memory of the host's. Any error is a good answer. Faults are: values that differ, memory that is
// not the program's and changed, limits that were passed, memory that is not given back. Accesses outside
// memory end the process; whoever calls this does so in a child of its own (campaign.h).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "rewire/tests/hostile/guarded_memory.h"
#include "rewire/tests/hostile/run.h"
#include "rewire/vm/vm.h"

namespace rewire::hostile {

// How far a file came, and what was wrong.
struct Verdict {
  bool read = false;
  bool verified = false;
  bool linked = false;
  std::uint32_t runs = 0;           // calls of functions
  std::uint32_t good_runs = 0;      // those that gave a result
  std::uint32_t bound_runs = 0;     // calls with outputs bound, whose values were compared
  std::string answer;               // the first error, or that of the first function's run
  std::vector<std::string> faults;  // "kind: what"; the same fault has the same kind
};

// Told where the judge is, so that a process that ends can be asked what it was at.
struct Progress {
  std::uint64_t number = 0;
  char stage[64] = {};
};

class Judge {
 public:
  // The kernels of the stock library, linked in. `progress` may be null.
  explicit Judge(Progress* progress);

  // `number` decides inputs and bindings.
  Verdict Try(std::string_view file, std::uint64_t number);

 private:
  void At(const char* stage);
  void Open(std::string_view file, std::uint64_t number);
  void Run(const Executable& executable, std::uint64_t number);
  void RunFunction(const Program& program, const FunctionRuns::Linker& link, std::uint32_t function,
                   std::uint64_t number);
  void Answer(const Error& error);
  void Fault(const char* kind, const std::string& what);

  GuardedMemory memory_;
  KernelSet kernels_;
  Progress* progress_;
  Verdict verdict_;
};

}  // namespace rewire::hostile
