// SPDX-License-Identifier: Apache-2.0
// Tests control the simulated CUDA driver by this. The functions are exported by the simulated libcuda.so.1;
// a driver without them is a real one. All may be called from any thread.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace rewire::simulated_cuda {

struct Counters {
  uint64_t device_allocations, device_bytes;  // alive; what a pool keeps for later is not
  uint64_t pool_reserved_bytes;
  uint64_t pinned_allocations, pinned_bytes, registered_ranges;
  uint64_t streams, events, modules, graphs, graph_execs;
  uint64_t retained_contexts;
  // Since the last Reset:
  uint64_t launches, graph_launches, copies, fills, host_functions;
  uint64_t host_waits;  // calls that waited for a device, or would have
  uint64_t violations;
};

// Time is virtual: it follows from the order of calls and the costs below, not from the machine.
struct LogEntry {
  char kind;  // k: kernel, h: copy from the host, d: copy to it, p: copy between or within devices, m: fill,
              // f: host function
  int device;
  uint32_t stream;  // a small number for each stream; reused once a stream is destroyed
  uint64_t bytes;
  uint64_t start, end;  // nanoseconds of virtual time
  char name[64];        // of a kernel
};

// The functions, and what they do. Numbers k begin at 1, which is the next call or work. Reset:
// everything is as it was at the start. The log, the counters "since" and the violations are empty.
// FailCall: the k-th call of a driver function fails with a code. Functions that release something still
// release it. The
//   name is without a suffix of a version. "*" means any function but those that word an error.
// FailWork: the k-th piece of work of a kind, as in LogEntry, fails on its device when it is run. The device
// is then lost. LoseDevice: from now on everything on the device fails with the code. 0 makes it whole again.
// SetCosts: the virtual time of launches and copies, in nanoseconds. A fill counts as a copy.
// SetRealTime: work really takes its virtual time, times this factor. With 0, the default, it takes as little
// as it can. SetDelays: each piece of work begins up to `most` nanoseconds late, by chance from a seed. So
// streams overtake each other. CountCalls: how often a driver function was called since Reset. GetLog: 0 if
// there is no such entry. The log is kept while SetLog has switched it on. Violation: misuse that was seen,
// oldest first, or null behind the last. The text is valid until Reset. Peek: copies device memory for a test
// to look at, without waiting for work. 0 if it is no live allocation.
//
// X(name, result type, parameters)
#define REWIRE_SIMULATED_CONTROL(X)                                         \
  X(Reset, void, ())                                                        \
  X(FailCall, void, (const char* function, uint64_t k, int code))           \
  X(FailWork, void, (char kind, uint64_t k, int code))                      \
  X(LoseDevice, void, (int device, int code))                               \
  X(SetCosts, void, (uint64_t launch, uint64_t copy, double copy_per_byte)) \
  X(SetRealTime, void, (double factor))                                     \
  X(SetDelays, void, (uint64_t seed, uint64_t most))                        \
  X(SetComputeCapability, void, (int device, int major, int minor))         \
  X(SetTotalMemory, void, (int device, uint64_t bytes))                     \
  X(SetLog, void, (int on))                                                 \
  X(GetCounters, void, (Counters * counters))                               \
  X(CountCalls, uint64_t, (const char* function))                           \
  X(LogSize, uint64_t, ())                                                  \
  X(GetLog, int, (uint64_t at, LogEntry * entry))                           \
  X(VirtualNow, uint64_t, ())                                               \
  X(Violation, const char*, (uint64_t at))                                  \
  X(Peek, int, (uint64_t address, void* to, size_t bytes))

// The functions, found by their exported names, rewire_simulated_cuda_NAME.
struct Control {
#define REWIRE_CONTROL_ROW(name, result, parameters) result(*name) parameters = nullptr;
  REWIRE_SIMULATED_CONTROL(REWIRE_CONTROL_ROW)  // NOLINT(readability-identifier-naming)
#undef REWIRE_CONTROL_ROW

  // `find` is dlsym bound to the library. False if a function is missing: the driver is not simulated.
  template <typename Find>
  bool Load(Find find) {
    bool found = true;
#define REWIRE_CONTROL_ROW(name, result, parameters)                             \
  name = reinterpret_cast<decltype(name)>(find("rewire_simulated_cuda_" #name)); \
  found = found && name != nullptr;
    REWIRE_SIMULATED_CONTROL(REWIRE_CONTROL_ROW)
#undef REWIRE_CONTROL_ROW
    return found;
  }
};

}  // namespace rewire::simulated_cuda
