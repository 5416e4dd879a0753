// SPDX-License-Identifier: Apache-2.0
// Public header: <rewire/vm/memory_bound.h>.
//
// MemoryBound: how much memory one run of a function can need, computed from the verified code.
//
// The analysis follows the code along all paths. Where paths meet, the larger amount counts. Loops are
// followed until nothing changes any more. Sizes come from the signature, from constants, from LoadConsti,
// and from what the `rewire.shape.*` functions compute of them.
//
// The bound holds under two conditions. Inputs are contiguous host tensors, borrowed and aligned to 64 bytes.
// Bound outputs are contiguous, aligned as the kernels require, and do not overlap the inputs.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

#include "rewire/base/array.h"
#include "rewire/base/export.h"
#include "rewire/base/status.h"
#include "rewire/executable_format/executable.h"

namespace rewire {

class KernelSet;

struct MemoryBoundOptions {
  // True: all outputs are bound to the caller's memory. False: no output is bound.
  bool outputs_bound = false;
  // The largest values of symbolic dimensions, by name. Needed only where they are smaller than what the
  // executable declares (Module::symbol_limits). The bound also holds for all smaller values.
  Array<std::pair<std::string, std::int64_t>> max_dims;
  // Units of work (base/work_meter.h) that finding the bound may take. A function that takes more has no
  // bound. 0: 2^25, and 64 for each byte of code, tables and texts.
  std::uint64_t work = 0;
  // The search ends there with kDeadlineExceeded.
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
  // True: the run is one of TryInvokeAsync or a Pipeline, and memory of bound outputs on the host is not
  // pinned. Copies from devices then come by way of pinned memory of the VM's.
  bool asynchronous = false;
};

// The bound of the memory on one device.
struct DeviceMemoryBound {
  std::uint32_t device = 0;  // index in the executable's table of devices
  std::uint64_t bytes = 0;   // at most at once, rounding of blocks included
};

// All figures are bytes.
struct MemoryBound {
  // The reason why there is no bound, naming function, pc and instruction. Empty if there is a bound.
  std::string unbounded;

  // The most that one run of a new VirtualMachine holds, rounding of blocks included.
  // VirtualMachine::bytes_peak never exceeds it. For straight-line code with static shapes the two are equal.
  std::uint64_t bytes = 0;
  // A StaticMemory of this size, aligned to 128 bytes, suffices. It holds `bytes` and the VM itself.
  std::uint64_t static_bytes = 0;
  // A SharedArena of this size suffices for the runs of this VM.
  std::uint64_t arena_bytes = 0;

  // The parts of `bytes`. Each figure is the peak of that part alone, so the sum may exceed `bytes`.
  std::uint64_t storage = 0;    // tensor data, as the program allocates it
  std::uint64_t objects = 0;    // headers of tensors, storages, ADTs and closures
  std::uint64_t stack = 0;      // registers, frames and argument lists
  std::uint64_t workspace = 0;  // of the kernel call that needs most
  std::uint64_t device = 0;     // the part of `storage` that lies on devices other than the host
  // Memory of the host that devices pin for copies to it, rounding of blocks included. Where the devices are
  // not known (BoundMemory), all of them are assumed to pin memory.
  std::uint64_t pinned = 0;

  // Each device other than the host that a run can take memory of, in the order of the executable's table.
  // Blocks that are free but kept for the next tensor count, so the sum may exceed `device`.
  Array<DeviceMemoryBound> devices;

  // Units of work that finding it took (MemoryBoundOptions::work).
  std::uint64_t work = 0;

  // Kernels that use workspace whose size their library does not declare. The figures do not include it.
  Array<std::string> undeclared_workspace;

  bool bounded() const { return unbounded.empty(); }
};

// Computes the bound for a function of an executable; the empty name means the entry function. `kernels`
// provides the shape functions and the declared workspace. Shape functions that it lacks give unknown sizes.
//
// Errors: kNotFound; kInvalidArgument for a dimension that no signature has, or for a negative size;
// kDeadlineExceeded.
REWIRE_API Result<MemoryBound> BoundMemory(const Executable& executable, KernelSet* kernels,
                                           std::string_view function = {},
                                           const MemoryBoundOptions& options = {});

}  // namespace rewire
