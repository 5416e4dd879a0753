// SPDX-License-Identifier: Apache-2.0
// Public header: <rewire/vm/limits.h>.
//
// Limits: what one invocation may use. LinkLimits: what linking may use.
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>

namespace rewire {

struct Limits {
  std::uint32_t depth = 1u << 14;                                   // nested calls that are active at once
  std::uint64_t steps = std::numeric_limits<std::uint64_t>::max();  // instructions executed
  // Bytes of the VM's memory from its allocator: objects, storage, stack and free lists.
  //
  // A result counts until the host releases it. The VM's own last result counts until DropResult or the end
  // of the next run. Before a run fails, the free lists are emptied. So only what is in use at that moment
  // decides, not what ran before.
  std::uint64_t bytes = std::numeric_limits<std::uint64_t>::max();
};

// The limits of Program::Link. The cost of linking depends on the file alone. The defaults make it safe to
// link files from strangers.
struct LinkLimits {
  // Units of work (base/work_meter.h), each about one instruction or record looked at. 0 stands for 2^25 plus
  // 64 for each byte of code, tables and texts.
  //
  // A part of it is for the output plan, which decides which outputs are made in the caller's memory.
  // Functions for which that part does not suffice get copied outputs, and linking goes on.
  std::uint64_t work = 0;
  // Bytes of constants and parameters that are decompressed, copied or computed, plus what `__init` holds
  // while it runs. Counted before they are allocated. 0 stands for 512 MiB plus 16 for each byte of constants
  // in the file and of given parameters.
  std::uint64_t bytes = 0;
  // When this time has passed, linking fails with kDeadlineExceeded. Includes the run of `__init`.
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
};

}  // namespace rewire
