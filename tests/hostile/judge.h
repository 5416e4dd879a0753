// SPDX-License-Identifier: Apache-2.0
// Does with a file from a stranger what a host would do, and checks that the library keeps its promises.
//
// The judge reads and verifies the file and links it with the stock kernels. Then it runs functions of the
// program: first as they are, then with outputs bound to the host's memory.
//
// Any error is a good answer. These are faults:
//   - bound outputs have other values than unbound ones;
//   - memory that is not the program's has changed;
//   - a limit was passed;
//   - memory is not given back.
// An access outside valid memory ends the process. So the caller must run the judge in a child process
// (campaign.h).
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
  std::vector<std::string> slow;    // faults of time; Try() looks for them again, and moves them to `faults`
};

// The place where the judge is. If the process ends, its parent can see here what the judge was doing.
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
  Verdict TryOnce(std::string_view file, std::uint64_t number);
  void At(const char* stage);
  void Open(std::string_view file, std::uint64_t number);
  void Run(const Executable& executable, std::uint64_t number);
  void RunFunction(const Program& program, const FunctionRuns::Linker& link, std::uint32_t function,
                   std::uint64_t number);
  void Answer(const Error& error);
  void Fault(const char* kind, const std::string& what);
  void Slow(const char* kind, double milliseconds);

  GuardedMemory memory_;
  KernelSet kernels_;
  Progress* progress_;
  Verdict verdict_;
};

}  // namespace rewire::hostile
